"""Scans the text of a trace block by block, on one thread or several, with the same result.

ctypes lets other threads run during a call, so blocks are scanned by plain Python threads. The scan of a block begins
at a guess: the first place in it that looks like the start of an event. It counts only if the scan of the text before
it arrives exactly there; otherwise that scan goes on through the block, so the result never depends on the guess.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain

from msgspec import Struct

from warpline.sources.kineto import tolerant
from warpline.sources.kineto.header import HEADER_LIMIT, Header, read_header
from warpline.sources.kineto.native import NativeScanner
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

    def next_block(self) -> bytes | None:
        """The next block; None at the end of the stream."""
        block = next(self._blocks, None)
        self.ended = block is None
        return block

    def give_back(self, blocks: Iterable[bytes]) -> None:
        """Put back blocks that were read but not used."""
        self._blocks = chain(list(blocks), self._blocks)
        self.ended = False

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
        while length < wanted and (block := self.next_block()) is not None:
            parts.append(block)
            length += len(block)
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


def scan_blocks(scanner: Scanner, window: TextWindow, start: int, threads: int) -> ScanStep:
    """Read events from `start` of the window to the end of the events or of the stream."""
    step = scanner.feed(window.text, window.base, start, window.ended)
    if step.status is not Status.MORE:
        return step
    window.advance(step.position)
    if threads > 1 and isinstance(scanner, NativeScanner):
        return _Threads(scanner, window).scan(threads)
    while True:
        # The window at least doubles, so that an event longer than a block is not read too often.
        window.fill(2 * len(window.text) + 1)
        step = scanner.feed(window.text, window.base, 0, window.ended)
        if step.status is not Status.MORE:
            return step
        window.advance(step.position)


class _Trial(Struct, frozen=True):
    """An independent scan of one block."""

    block: bytes
    scanner: NativeScanner
    begin: int
    """Where the scan started; the block's length if nothing looks like an event."""
    step: ScanStep


class _Threads:
    """Scan the blocks of a stream on several threads, and join the results in order."""

    def __init__(self, scanner: NativeScanner, window: TextWindow) -> None:
        self._scanner = scanner
        self._window = window
        self._spare: list[NativeScanner] = []

    def scan(self, threads: int) -> ScanStep:
        window, base, wanted = self._window, self._window.total, 0
        waiting: deque[tuple[bytes, Future[_Trial]]] = deque()
        with ThreadPoolExecutor(threads) as pool:
            while True:
                while len(waiting) <= threads and (block := window.next_block()) is not None:
                    waiting.append((block, pool.submit(self._try, block, base)))
                    base += len(block)
                if not waiting:
                    return self._scanner.feed(window.text, window.base, 0, True)
                trial = waiting.popleft()[1].result()
                if len(window.text) + len(trial.block) < wanted:
                    window.text += trial.block
                    continue
                step = self._join(trial)
                trial.scanner.clear()
                self._spare.append(trial.scanner)
                if step.status is not Status.MORE:
                    window.give_back(block for block, _ in waiting)
                    return step
                window.advance(step.position)
                # The window at least doubles, so that an event longer than a block is not read too often.
                wanted = 2 * len(window.text) + 1

    def _try(self, block: bytes, base: int) -> _Trial:
        try:
            scanner = self._spare.pop()
        except IndexError:
            scanner = NativeScanner()
        begin = scanner.boundary(block)
        return _Trial(block, scanner, begin, scanner.feed(block, base, begin, False))

    def _join(self, trial: _Trial) -> ScanStep:
        """Before, the window holds the unread text before the block; afterwards, all unread text."""
        window, scanner = self._window, self._scanner
        if trial.begin < len(trial.block):
            window.text += trial.block[: trial.begin]
            step = scanner.feed(window.text, window.base, 0, False)
            arrived = step.status is Status.MORE and step.position == len(window.text)
            if arrived and scanner.wasted() + trial.scanner.wasted() <= tolerant.WASTE_LIMIT:
                scanner.merge(trial.scanner)
                window.base += len(window.text) - trial.begin
                window.text = trial.block
                return trial.step
            if step.status is not Status.MORE:
                window.text += trial.block[trial.begin :]
                return step
            window.advance(step.position)
        window.text += trial.block[trial.begin :] if trial.begin < len(trial.block) else trial.block
        return scanner.feed(window.text, window.base, 0, False)
