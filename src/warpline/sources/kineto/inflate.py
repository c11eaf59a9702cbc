"""gzip to windows of text, with a size limit and tolerant of damage."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from typing import Any, Final

from warpline.errors import UnreadableFile
from warpline.sources.zlib_engine import GZIP_WINDOW_BITS, DamagedGzip, engine

MAGIC: Final = b"\x1f\x8b"
COMPRESSED_CHUNK: Final = 256 << 10
BOMB_RATIO: Final = 200
"""Real traces shrink 10- to 30-fold; deflate reaches 1,032-fold only on endless repetition."""
BOMB_BYTES: Final = 256 << 20
"""Text shorter than this is read regardless of its compression ratio."""
AHEAD: Final = 3
"""Windows inflated in advance, because windows differ in length."""


class Inflater:
    """Iterates over the text of a `.gz` file, member after member, in pieces of at most `window_bytes`."""

    def __init__(self, path: Path, window_bytes: int, limit_bytes: int) -> None:
        self.path = path
        self.window_bytes = window_bytes
        self.limit_bytes = limit_bytes
        self.notes: list[str] = []
        self.broken = False
        """The stream is damaged or ends early; the text before the damage was delivered."""

    def __iter__(self) -> Iterator[bytes]:
        produced = consumed = 0
        for piece, consumed in self._pieces():
            produced += len(piece)
            if produced > self.limit_bytes:
                raise too_large(self.limit_bytes)
            if produced > BOMB_BYTES and produced > BOMB_RATIO * consumed:
                raise UnreadableFile(
                    "zip-bomb",
                    f"{produced >> 20} MiB came out of {consumed >> 10} KiB of gzip, which no trace does",
                    "if it is one after all, decompress it with gunzip and give the .json",
                )
            yield piece

    def _pieces(self) -> Iterator[tuple[bytes, int]]:
        consumed = 0
        stream: Any = None
        with self.path.open("rb") as file:
            pending = b""
            while True:
                if not pending:
                    pending = file.read(COMPRESSED_CHUNK)
                    consumed += len(pending)
                if not pending:
                    break
                if stream is None:
                    if not pending.startswith(MAGIC[: len(pending)]):
                        # gzip allows zero padding behind the last member; anything else is damage.
                        if pending.strip(b"\0"):
                            self._damage("other data follows the compressed text")
                        return
                    stream = engine.decompressobj(GZIP_WINDOW_BITS)
                before = stream.copy()
                try:
                    piece = stream.decompress(pending, self.window_bytes)
                except DamagedGzip as error:
                    yield _up_to_damage(before, pending), consumed
                    self._damage(str(error))
                    return
                pending = stream.unconsumed_tail
                if stream.eof:
                    pending = stream.unused_data
                    stream = None
                if piece:
                    yield piece, consumed
        if stream is not None:
            rest = stream.flush()
            if rest:
                yield rest, consumed
            self._damage("it ends early")

    def _damage(self, reason: str) -> None:
        self.broken = True
        self.notes.append(f"The gzip stream is damaged ({reason}); the text before the damage was read.")


def _up_to_damage(stream: Any, pending: bytes) -> bytes:
    """The text before the damage: a failing call returns nothing, so the input is repeated byte by byte."""
    parts = []
    try:
        for index in range(len(pending)):
            parts.append(stream.decompress(pending[index : index + 1]))
    except DamagedGzip:
        pass
    return b"".join(parts)


def too_large(limit_bytes: int) -> UnreadableFile:
    return UnreadableFile(
        "too-large",
        f"the trace is longer than {limit_bytes:,} bytes of text",
        "set WARPLINE_MAX_BYTES to a larger number to read it anyway",
    )


@contextmanager
def ahead(pieces: Iterable[bytes]) -> Iterator[Iterator[bytes]]:
    """The same pieces, inflated by a second thread while the first thread reads earlier ones."""
    ready: Queue[bytes | BaseException | None] = Queue(AHEAD)
    stopped = threading.Event()

    def produce() -> None:
        try:
            for piece in pieces:
                ready.put(piece)
                if stopped.is_set():
                    return
            ready.put(None)
        except BaseException as error:  # raised again in the thread that waits for the piece
            ready.put(error)

    def consume() -> Iterator[bytes]:
        while True:
            item = ready.get()
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            yield item

    thread = threading.Thread(target=produce, name="warpline-inflate", daemon=True)
    thread.start()
    try:
        yield consume()
    finally:
        stopped.set()
        while thread.is_alive():
            try:
                ready.get_nowait()
            except Empty:
                thread.join(0.001)
