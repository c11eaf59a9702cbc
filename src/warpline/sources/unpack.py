"""The bytes of a profile, plain, gzip or xz, in pieces: one limit on their size, and tolerant of damage."""

from __future__ import annotations

import enum
import lzma
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from warpline.errors import UnreadableFile, UsageError
from warpline.sources.zlib_engine import GZIP_WINDOW_BITS, DamagedGzip, GzipFile, engine

GZIP_MAGIC: Final = b"\x1f\x8b"
XZ_MAGIC: Final = b"\xfd7zXZ\x00"
COMPRESSED_CHUNK: Final = 256 << 10
PIECE_BYTES: Final = 1 << 20
MAX_BYTES: Final = 64 << 30
"""Default limit on one unpacked profile: about 230 million events, more than most machines can hold."""
BOMB_RATIO: Final = 200
"""Real traces shrink 10- to 30-fold; deflate reaches 1,032-fold only on endless repetition."""
BOMB_BYTES: Final = 32 << 20
"""A profile shorter than this is read regardless of its compression ratio."""
ROWS_BOMB_BYTES: Final = 4 << 20
"""The same for messages of protobuf, pickles and columns of Parquet: a row may take two bytes of a file, or none."""
XZ_MEMORY_BYTES: Final = 256 << 20
"""xz -9 needs 65 MiB."""


class Packing(enum.Enum):
    """How a file is packed."""

    PLAIN = "plain"
    GZIP = "gzip"
    XZ = "xz"


def packing_of(head: bytes) -> Packing:
    """How a file that starts with these bytes is packed."""
    if head.startswith(GZIP_MAGIC):
        return Packing.GZIP
    return Packing.XZ if head.startswith(XZ_MAGIC) else Packing.PLAIN


def unpacked_head(head: bytes, packing: Packing, most: int) -> tuple[bytes, bool]:
    """The first unpacked bytes of a packed file, and whether there are no more; ValueError where it is damaged."""
    stream: Any = _xz_stream() if packing is Packing.XZ else engine.decompressobj(GZIP_WINDOW_BITS)
    try:
        return stream.decompress(head, most), stream.eof
    except (DamagedGzip, lzma.LZMAError, MemoryError, EOFError) as error:
        raise ValueError(str(error)) from error


def most_bytes() -> int:
    """The limit on an unpacked profile: WARPLINE_MAX_BYTES, or MAX_BYTES."""
    text = os.environ.get("WARPLINE_MAX_BYTES", "")
    if not text:
        return MAX_BYTES
    if not (text.isascii() and text.isdigit()):
        raise UsageError(
            "bad-limit", f"WARPLINE_MAX_BYTES is {text!r}, not a number of bytes", "unset it, or use digits"
        )
    return int(text)


def too_large(path: Path, limit_bytes: int) -> UnreadableFile:
    """The error for a profile beyond the limit."""
    return UnreadableFile(
        "too-large",
        f"{path.name} holds more than {limit_bytes:,} bytes",
        "set WARPLINE_MAX_BYTES to a larger number to read it anyway",
    )


class Unpacked:
    """Iterates over the bytes of a file, unpacked where it is packed, in pieces of at most `piece_bytes`."""

    def __init__(
        self,
        path: Path,
        piece_bytes: int = PIECE_BYTES,
        limit_bytes: int | None = None,
        bomb_bytes: int | None = None,
    ) -> None:
        self.path = path
        self.piece_bytes = piece_bytes
        self.limit_bytes = most_bytes() if limit_bytes is None else limit_bytes
        self.bomb_bytes = BOMB_BYTES if bomb_bytes is None else bomb_bytes
        self.damage = ""
        """Why the bytes end early, as a sentence; empty if they do not. What precedes the damage was delivered."""

    def __iter__(self) -> Iterator[bytes]:
        produced = 0
        with self.path.open("rb") as file:
            packing = packing_of(file.read(len(XZ_MAGIC)))
            file.seek(0)
            pieces = {
                Packing.GZIP: self._from_gzip,
                Packing.XZ: self._from_xz,
                Packing.PLAIN: self._as_it_is,
            }[packing]
            for piece, consumed in pieces(file):
                produced += len(piece)
                if produced > self.limit_bytes:
                    raise too_large(self.path, self.limit_bytes)
                if packing is not Packing.PLAIN and produced > self.bomb_bytes and produced > BOMB_RATIO * consumed:
                    sizes = f"{produced >> 20} MiB came out of {consumed >> 10} KiB of {packing.value}"
                    raise UnreadableFile(
                        "zip-bomb",
                        f"{sizes}, which no profile does",
                        "if it is one after all, unpack it and give the plain file",
                    )
                yield piece

    def _as_it_is(self, file: BinaryIO) -> Iterator[tuple[bytes, int]]:
        while piece := file.read(self.piece_bytes):
            yield piece, 0

    def _from_gzip(self, file: BinaryIO) -> Iterator[tuple[bytes, int]]:
        """Pieces, each with the packed bytes consumed so far. A damaged file is read again, with more care."""
        given = 0
        try:
            reader = GzipFile(fileobj=file, mode="rb")
            while piece := reader.read(self.piece_bytes):
                given += len(piece)
                yield piece, file.tell()
            return
        except (DamagedGzip, EOFError, OSError):
            file.seek(0)
        for piece, consumed in self._gzip_members(file):
            if fresh := piece[given:]:
                yield fresh, consumed
            given = max(given - len(piece), 0)

    def _gzip_members(self, file: BinaryIO) -> Iterator[tuple[bytes, int]]:
        """The same, member after member and up to the damage."""
        consumed, pending = 0, b""
        stream: Any = None
        while True:
            if not pending:
                pending = file.read(COMPRESSED_CHUNK)
                consumed += len(pending)
            if not pending:
                break
            if stream is None:
                if self._is_over(pending, GZIP_MAGIC):
                    return
                stream = engine.decompressobj(GZIP_WINDOW_BITS)
            before = stream.copy()
            try:
                piece = stream.decompress(pending, self.piece_bytes)
            except DamagedGzip as error:
                yield _up_to_damage(before, pending), consumed
                self._note(Packing.GZIP, str(error))
                return
            pending = stream.unconsumed_tail
            if stream.eof:
                pending = stream.unused_data
                stream = None
            if piece:
                yield piece, consumed
        if stream is not None:
            if rest := stream.flush():
                yield rest, consumed
            self._note(Packing.GZIP, "it ends early")

    def _from_xz(self, file: BinaryIO) -> Iterator[tuple[bytes, int]]:
        """The same for the streams of an xz file."""
        consumed, pending = 0, b""
        stream: lzma.LZMADecompressor | None = None
        while True:
            if not pending and (stream is None or stream.needs_input):
                pending = file.read(COMPRESSED_CHUNK)
                consumed += len(pending)
                if not pending:
                    break
            if stream is None:
                pending = pending.lstrip(b"\0")  # padding between streams
                if not pending:
                    continue
                if self._is_over(pending, XZ_MAGIC):
                    return
                stream = _xz_stream()
            try:
                piece = stream.decompress(pending, self.piece_bytes)
            except (lzma.LZMAError, MemoryError) as error:
                self._note(Packing.XZ, str(error))
                return
            pending = b""
            if stream.eof:
                pending, stream = stream.unused_data, None
            if piece:
                yield piece, consumed
        if stream is not None:
            self._note(Packing.XZ, "it ends early")

    def _is_over(self, pending: bytes, magic: bytes) -> bool:
        """Whether no further member follows. gzip allows zero padding behind the last one; anything else is damage."""
        if pending.startswith(magic[: len(pending)]):
            return False
        if pending.strip(b"\0"):
            self._note(packing_of(magic), "other data follows the compressed bytes")
        return True

    def _note(self, packing: Packing, reason: str) -> None:
        self.damage = f"The {packing.value} stream is damaged ({reason}); what precedes the damage was read."


def _xz_stream() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY_BYTES)


def _up_to_damage(stream: Any, pending: bytes) -> bytes:
    """The bytes before the damage: a failing call returns nothing, so the input is repeated byte by byte."""
    parts = []
    try:
        for index in range(len(pending)):
            parts.append(stream.decompress(pending[index : index + 1]))
    except DamagedGzip:
        pass
    return b"".join(parts)
