"""A Kineto file, plain or gzip -> RawEvents: chooses the scanner and feeds it.

A plain file is mapped and given whole, to several threads where the compiled scanner is present. A `.gz` is
inflated by a second thread and given window by window, so that its text is never all in memory.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

from warpline.errors import UnreadableFile, UsageError
from warpline.sources.kineto.arguments import read_arguments
from warpline.sources.kineto.events import RawEvents
from warpline.sources.kineto.header import HEADER_LIMIT, Header, empty_file, not_a_trace, read_header, read_tail
from warpline.sources.kineto.inflate import MAGIC, Inflater, ahead, too_large
from warpline.sources.kineto.native import NativeScanner, is_available
from warpline.sources.kineto.python_scan import PythonScanner
from warpline.sources.kineto.scanner import Scanner, Status, Step

__all__ = ["MAX_BYTES", "ScannerName", "read_arguments", "scan_file"]

ScannerName = Literal["auto", "native", "python"]

MAX_BYTES: Final = 64 << 30
"""Default bound on the text of one trace: about 230 million events, more than fit most machines."""
WINDOW_BYTES: Final = 1 << 20
"""Text inflated at once: a window is still in the processor's cache when it is scanned."""
HEADER_STEP: Final = 1 << 20
"""First prefix searched for the events; quadrupled while they do not begin in it."""
MAX_THREADS: Final = 8
"""More threads only wait for memory: eight scan several gigabytes a second."""


def scan_file(
    path: Path,
    *,
    scanner: ScannerName = "auto",
    limit_bytes: int | None = None,
    threads: int | None = None,
    window_bytes: int = WINDOW_BYTES,
) -> RawEvents:
    """All events of a trace, in file order.

    `auto` takes the compiled scanner where it was built. Text beyond `limit_bytes` (default MAX_BYTES, or
    the environment's WARPLINE_MAX_BYTES) makes the file unreadable rather than the machine. `threads` and
    `window_bytes` change the speed, never the result.
    """
    limit = _limit() if limit_bytes is None else limit_bytes
    try:
        with path.open("rb") as file:
            magic = file.read(len(MAGIC))
            if not magic:
                raise empty_file()
            if magic == MAGIC:
                return _scan_gzip(path, _new_scanner(scanner), limit, window_bytes)
            if os.fstat(file.fileno()).st_size > limit:
                raise too_large(limit)
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
                return _scan_plain(text, _new_scanner(scanner), threads or min(os.cpu_count() or 1, MAX_THREADS))
    except OSError as error:
        raise UnreadableFile("no-file", f"{path} cannot be read: {error.strerror}", "check the path") from error
    except (MemoryError, OverflowError) as error:
        raise UnreadableFile("too-large", f"{path.name}: {error}", "record fewer steps, or split the trace") from error


def _limit() -> int:
    text = os.environ.get("WARPLINE_MAX_BYTES", "")
    if not text:
        return MAX_BYTES
    if not text.isdigit():
        raise UsageError(
            "bad-limit", f"WARPLINE_MAX_BYTES is {text!r}, not a number of bytes", "unset it, or use digits"
        )
    return int(text)


def _new_scanner(name: ScannerName) -> NativeScanner | PythonScanner:
    if name == "native" and not is_available():
        raise UsageError(
            "no-native-scanner", "the compiled scanner was not built", "install a C compiler and reinstall"
        )
    return PythonScanner() if name == "python" or not is_available() else NativeScanner()


def _scan_plain(text: mmap.mmap, scanner: NativeScanner | PythonScanner, threads: int) -> RawEvents:
    header, prefix = Header(), HEADER_STEP
    while header.events_start < 0:
        header = read_header(text[:prefix], complete=prefix >= min(len(text), HEADER_LIMIT))
        prefix = min(prefix * 4, HEADER_LIMIT)
    if isinstance(scanner, NativeScanner) and threads > 1:
        step = scanner.feed_threads(text, header.events_start, threads)
    else:
        step = scanner.feed(text, 0, header.events_start, True)
    if step.status is Status.DONE:
        _read_tail(text[step.position : step.position + HEADER_LIMIT], len(text) - step.position, header)
    return _assemble(scanner, header, step.status is Status.TRUNCATED, len(text))


def _scan_gzip(path: Path, scanner: NativeScanner | PythonScanner, limit: int, window_bytes: int) -> RawEvents:
    inflater = Inflater(path, window_bytes, limit)
    with ahead(inflater) as pieces:
        windows = _Windows(pieces)
        header, wanted = Header(), min(HEADER_STEP, window_bytes)
        while header.events_start < 0:
            windows.fill(wanted)
            complete = windows.ended or len(windows.text) >= HEADER_LIMIT
            header = read_header(windows.text[:HEADER_LIMIT], complete)
            wanted = min(wanted * 4, HEADER_LIMIT)
        step = windows.scan(scanner, header.events_start)
        if step.status is Status.DONE:
            tail, length = windows.rest(step.position)
            _read_tail(tail, length, header)
    header.notes.extend(inflater.notes)
    return _assemble(scanner, header, step.status is Status.TRUNCATED or inflater.broken, windows.total)


class _Windows:
    """The text that is at hand of a stream: a window, and how much came before it."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self.text = b""
        self.base = 0
        self.ended = False

    @property
    def total(self) -> int:
        return self.base + len(self.text)

    def fill(self, wanted: int) -> None:
        """Joins pieces until the window is `wanted` bytes long or the stream ends."""
        parts, length = [self.text], len(self.text)
        while length < wanted and not self.ended:
            piece = next(self._pieces, None)
            self.ended = piece is None
            parts.append(piece or b"")
            length += len(parts[-1])
        self.text = b"".join(parts) if len(parts) > 1 else self.text

    def scan(self, scanner: Scanner, start: int) -> Step:
        while True:
            step = scanner.feed(self.text, self.base, start, self.ended)
            if step.status is not Status.MORE:
                return step
            start = 0
            self.base += step.position
            self.text = self.text[step.position :]
            # At least as much again as is left over, so that an event longer than a window is not read too often.
            self.fill(2 * len(self.text) + 1)

    def rest(self, position: int) -> tuple[bytes, int]:
        """The text from `position` of the window to the end of the stream, up to HEADER_LIMIT, and its length."""
        parts, length = [self.text[position:]], len(self.text) - position
        for piece in self._pieces:
            if length < HEADER_LIMIT:
                parts.append(piece)
            length += len(piece)
        self.base += position + length
        self.text = b""
        return b"".join(parts), length


def _read_tail(text: bytes, length: int, header: Header) -> None:
    if length > HEADER_LIMIT:
        header.notes.append(f"{length:,} bytes follow the events; the keys in them were not read.")
    elif not header.bare_list:
        read_tail(text, header)


def _assemble(scanner: NativeScanner | PythonScanner, header: Header, truncated: bool, size: int) -> RawEvents:
    events = scanner.events()
    if header.bare_list and len(events) and not events.phase.any():
        raise not_a_trace("its list holds objects that are no events")
    events.header, events.notes = header.keys, header.notes
    events.truncated, events.bytes_read = truncated, size
    events.scanner = "native" if isinstance(scanner, NativeScanner) else "python"
    return events
