"""Reads a Kineto file, plain, gzip or xz, into RawEvents: chooses the scanner and feeds it.

A second thread reads the file, and unpacks it, in blocks, so that the text is never all in memory; `blocks.py`
has them scanned.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Literal

from warpline.errors import UnreadableFile, UsageError
from warpline.sources.kineto.blocks import TextWindow, ahead, scan_blocks
from warpline.sources.kineto.damage import recall
from warpline.sources.kineto.events import RawEvents
from warpline.sources.kineto.header import HEADER_LIMIT, Header, empty_file, not_a_trace, read_tail
from warpline.sources.kineto.native import NativeScanner, is_available
from warpline.sources.kineto.proton import joined_streams
from warpline.sources.kineto.python_scan import PythonScanner
from warpline.sources.kineto.scanner import Scanner, Status
from warpline.sources.unpack import XZ_MAGIC, Packing, Unpacked, most_bytes, packing_of, too_large

ScannerName = Literal["auto", "native", "python"]

WINDOW_BYTES: Final = 4 << 20
"""Bytes read at once: a block is still in the CPU cache when it is scanned."""


def scan_file(
    path: Path,
    *,
    scanner: ScannerName = "auto",
    limit_bytes: int | None = None,
    window_bytes: int = WINDOW_BYTES,
) -> RawEvents:
    """All events of a trace, in file order.

    `auto` takes the compiled scanner where it was built. Text beyond `limit_bytes` (default: `most_bytes()`) makes the
    file unreadable rather than the machine. `window_bytes` changes the speed, never the result.
    """
    limit = most_bytes() if limit_bytes is None else limit_bytes
    try:
        with path.open("rb") as file:
            head, size = file.read(len(XZ_MAGIC)), os.fstat(file.fileno()).st_size
        if not head:
            raise empty_file()
        if packing_of(head) is Packing.PLAIN and size > limit:
            raise too_large(path, limit)
        unpacked = Unpacked(path, window_bytes, limit)
        events = _scan(joined_streams(unpacked), _new_scanner(scanner))
        if unpacked.damage:
            events.notes.append(unpacked.damage)
            events.truncated = True
        return events
    except OSError as error:
        raise UnreadableFile("no-file", f"{path} cannot be read: {error.strerror}", "check the path") from error
    except (MemoryError, OverflowError) as error:
        raise UnreadableFile("too-large", f"{path.name}: {error}", "record fewer steps, or split the trace") from error


def _new_scanner(name: ScannerName) -> Scanner:
    if name == "native" and not is_available():
        raise UsageError(
            "no-native-scanner", "the compiled scanner was not built", "install a C compiler and reinstall"
        )
    return NativeScanner() if name != "python" and is_available() else PythonScanner()


def _scan(blocks: Iterable[bytes], scanner: Scanner) -> RawEvents:
    with ahead(blocks) as pieces:
        window = TextWindow(pieces)
        header = window.read_header()
        step = scan_blocks(scanner, window, header.events_start)
        if step.status is Status.DONE:
            _read_tail(*window.rest(step.position), header)
    return _assemble(scanner, header, step.status is Status.TRUNCATED, window.total)


def _read_tail(text: bytes, length: int, header: Header) -> None:
    if length > HEADER_LIMIT:
        header.notes.append(f"{length:,} bytes follow the events; their keys were not read.")
    elif not header.bare_list:
        read_tail(text, header)


def _assemble(scanner: Scanner, header: Header, truncated: bool, size: int) -> RawEvents:
    events = scanner.events()
    if header.bare_list and len(events) and not events.phase.any():
        raise not_a_trace("its list contains objects that are not events")
    events.header, events.notes = header.keys, header.notes
    events.truncated, events.bytes_read = truncated, size
    recall(events)
    events.scanner = "native" if isinstance(scanner, NativeScanner) else "python"
    return events
