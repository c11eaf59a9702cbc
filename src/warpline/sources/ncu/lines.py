"""The lines of a text file, plain, gzipped or xz, of bounded length, tolerant of a damaged end."""

from __future__ import annotations

import codecs
import lzma
from collections.abc import Iterator
from pathlib import Path

from warpline.errors import UnreadableFile
from warpline.sources.detect import GZIP_MAGIC, XZ_MAGIC
from warpline.sources.kineto.inflate import BOMB_BYTES, BOMB_RATIO, Inflater
from warpline.sources.nsys.unpack import most_bytes

PIECE_BYTES = 1 << 20
MAX_LINE_CHARS = 8 << 20
"""A raw page with every metric of a chip has headers of under a megabyte."""
XZ_MEMORY_BYTES = 256 << 20
"""xz -9 needs 65 MiB."""
_BYTE_ORDER_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


class Unpacked:
    """The bytes of a file, unpacked where it is packed, piece by piece."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damage = ""
        """Why the bytes end early; empty if they do not."""

    def __iter__(self) -> Iterator[bytes]:
        with self.path.open("rb") as file:
            head = file.read(len(XZ_MAGIC))
        if head.startswith(GZIP_MAGIC):
            inflater = Inflater(self.path, PIECE_BYTES, most_bytes())
            yield from inflater
            self.damage = " ".join(inflater.notes)
        elif head.startswith(XZ_MAGIC):
            yield from self._from_xz()
        else:
            with self.path.open("rb") as file:
                while piece := file.read(PIECE_BYTES):
                    yield piece

    def _from_xz(self) -> Iterator[bytes]:
        produced = consumed = 0
        stream = lzma.LZMADecompressor(memlimit=XZ_MEMORY_BYTES)
        with self.path.open("rb") as file:
            while not stream.eof:
                packed = file.read(PIECE_BYTES) if stream.needs_input else b""
                if stream.needs_input and not packed:
                    self.damage = "The xz stream is damaged (it ends early); the part before the damage was read."
                    return
                consumed += len(packed)
                try:
                    piece = stream.decompress(packed, PIECE_BYTES)
                except (lzma.LZMAError, MemoryError) as error:
                    self.damage = f"The xz stream is damaged ({error}); the part before the damage was read."
                    return
                produced += len(piece)
                if produced > most_bytes() or (produced > BOMB_BYTES and produced > BOMB_RATIO * consumed):
                    raise UnreadableFile(
                        "zip-bomb",
                        f"{produced >> 20} MiB came out of {consumed >> 10} KiB of xz, which no report does",
                        "if it is one after all, unpack it with xz -d",
                    )
                yield piece


def text_lines(unpacked: Unpacked) -> Iterator[str]:
    """Lines with their ends, in UTF-8 or what a byte-order mark says; bytes that are no text are replaced."""
    decoder: codecs.IncrementalDecoder | None = None
    rest = ""
    for piece in unpacked:
        if decoder is None:
            encoding = next((name for mark, name in _BYTE_ORDER_MARKS if piece.startswith(mark)), "utf-8")
            decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        lines = (rest + decoder.decode(piece)).split("\n")
        rest = lines.pop()
        if len(rest) > MAX_LINE_CHARS:
            raise UnreadableFile(
                "line-too-long",
                f"{unpacked.path} has a line of over {MAX_LINE_CHARS >> 20} MiB, which ncu does not write",
                "export it again: ncu --import REPORT.ncu-rep --csv --page raw",
            )
        for line in lines:
            yield line + "\n"
    if rest:
        yield rest
