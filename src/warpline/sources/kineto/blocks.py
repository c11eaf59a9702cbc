"""Scans the text of a trace block by block."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from queue import Empty, Queue
from typing import Final

from warpline.sources.kineto.header import HEADER_LIMIT, Header, read_header
from warpline.sources.kineto.scanner import Scanner, ScanStep, Status


class TextWindow:
    """The current window of a stream's text, and the number of bytes before it."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self.text = b""
        self.base = 0
        self.ended = False

    @property
    def total(self) -> int:
        """Bytes of the stream up to the window's end."""
        return self.base + len(self.text)

    def read_header(self) -> Header:
        """What stands before the events, of which the window then holds the first."""
        header, wanted = Header(), 1
        while header.events_start < 0:
            self.fill(wanted)
            header = read_header(self.text[:HEADER_LIMIT], self.ended or len(self.text) >= HEADER_LIMIT)
            wanted = min(len(self.text) * 4, HEADER_LIMIT)
        return header

    def fill(self, wanted: int) -> None:
        """Join blocks until the window is `wanted` bytes long or the stream ends."""
        parts, length = [self.text], len(self.text)
        while length < wanted and not self.ended:
            block = next(self._blocks, None)
            self.ended = block is None
            parts.append(block or b"")
            length += len(parts[-1])
        self.text = b"".join(parts) if len(parts) > 1 else self.text

    def advance(self, position: int) -> None:
        """Drop the text that was read."""
        self.base += position
        self.text = self.text[position:]

    def rest(self, position: int) -> tuple[bytes, int]:
        """The text from `position` of the window to the end of the stream, up to HEADER_LIMIT, and its length."""
        parts, length = [self.text[position:]], len(self.text) - position
        for block in self._blocks:
            if length < HEADER_LIMIT:
                parts.append(block)
            length += len(block)
        self.base += position + length
        self.text = b""
        return b"".join(parts), length


def scan_blocks(scanner: Scanner, window: TextWindow, start: int) -> ScanStep:
    """Read events from `start` of the window to the end of the events or of the stream."""
    while True:
        step = scanner.feed(window.text, window.base, start, window.ended)
        if step.status is not Status.MORE:
            return step
        window.advance(step.position)
        # The window at least doubles, so that an event longer than a block is not read too often.
        window.fill(2 * len(window.text) + 1)
        start = 0


AHEAD: Final = 3
"""Windows unpacked in advance, because windows differ in length."""


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
