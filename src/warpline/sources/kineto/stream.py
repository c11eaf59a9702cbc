"""A Kineto file, plain or gzip -> RawEvents: chooses the scanner and feeds it."""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Final, Literal

from warpline.errors import UnreadableFile
from warpline.sources.kineto.arguments import read_arguments
from warpline.sources.kineto.columns import Columns, Scanner, Status
from warpline.sources.kineto.events import RawEvents
from warpline.sources.kineto.header import HEADER_LIMIT, Header, not_a_trace, read_header, read_tail
from warpline.sources.kineto.inflate import MAGIC, Inflater, too_large
from warpline.sources.kineto.python_scan import PythonScanner

WINDOW_BYTES: Final = 4 << 20
"""Text inflated at once: fits the second-level cache of most machines together with the scanner's columns."""
HEADER_STEP: Final = 1 << 20
"""First prefix searched for the events; quadrupled while they do not begin in it."""
MAX_BYTES: Final = 64 << 30
"""Default bound on the text of one trace, about 230 million events."""

__all__ = ["read_arguments", "scan_file"]

ScannerName = Literal["auto", "native", "python"]


def scan_file(path: Path, *, scanner: ScannerName = "auto", limit_bytes: int | None = None) -> RawEvents:
    """All events of a trace, in file order.

    `auto` takes the compiled scanner where it was built. Text beyond `limit_bytes` (default MAX_BYTES, or
    the environment's WARPLINE_MAX_BYTES) makes the file unreadable rather than the machine.
    """
    limit = limit_bytes if limit_bytes is not None else int(os.environ.get("WARPLINE_MAX_BYTES") or MAX_BYTES)
    try:
        with path.open("rb") as file:
            magic = file.read(len(MAGIC))
            size = os.fstat(file.fileno()).st_size
            if not magic:
                raise UnreadableFile("empty-file", f"{path.name} is empty", "record the trace again")
            if magic == MAGIC:
                return _scan_gzip(path, _new_scanner(scanner), limit)
            if size > limit:
                raise too_large(limit)
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
                return _scan_plain(text, scanner)
    except OSError as error:
        raise UnreadableFile("no-file", f"{path} cannot be read: {error.strerror}", "check the path") from error


def _new_scanner(name: ScannerName) -> PythonScanner:
    return PythonScanner()


def _scan_plain(text: mmap.mmap, name: ScannerName) -> RawEvents:
    prefix = HEADER_STEP
    while True:
        header = read_header(text[:prefix], complete=prefix >= min(len(text), HEADER_LIMIT))
        if header.events_start >= 0:
            break
        prefix = min(prefix * 4, HEADER_LIMIT)
    scanner = _new_scanner(name)
    step = scanner.feed(text, 0, header.events_start, True)
    truncated = step.status is Status.TRUNCATED
    if not truncated:
        _read_tail(text[step.position : step.position + HEADER_LIMIT], header, len(text) - step.position)
    return _assemble(scanner.columns(), header, truncated, len(text), "python")


def _scan_gzip(path: Path, scanner: Scanner, limit: int, window_bytes: int = WINDOW_BYTES) -> RawEvents:
    inflater = Inflater(path, window_bytes, limit)
    pieces = iter(inflater)
    text, base, total = b"", 0, 0
    header = Header()
    wanted = min(HEADER_STEP, window_bytes)
    ended = False
    while header.events_start < 0:
        while len(text) < wanted and not ended:
            piece = next(pieces, None)
            ended = piece is None
            text += piece or b""
        header = read_header(text, complete=ended or len(text) >= HEADER_LIMIT)
        wanted = min(wanted * 4, HEADER_LIMIT)
    total = len(text)
    start = header.events_start
    while True:
        step = scanner.feed(text, base, start, ended)
        if step.status is not Status.MORE:
            break
        # Join windows until the unread rest is at most half of them, so that a long event is not read too often.
        parts = [text[step.position :]]
        base += step.position
        start, missing = 0, max(len(parts[0]), 1)
        while missing > 0 and not ended:
            piece = next(pieces, None)
            ended = piece is None
            parts.append(piece or b"")
            missing -= len(parts[-1])
            total += len(parts[-1])
        text = b"".join(parts)
    truncated = step.status is Status.TRUNCATED or inflater.broken
    if step.status is Status.DONE:
        rest, length = [text[step.position :]], len(text) - step.position
        for piece in pieces:
            if length < HEADER_LIMIT:
                rest.append(piece)
            length += len(piece)
            total += len(piece)
        _read_tail(b"".join(rest), header, length)
    result = _assemble(scanner.columns(), header, truncated or inflater.broken, total, "python")
    result.notes.extend(inflater.notes)
    return result


def _read_tail(text: bytes, header: Header, length: int) -> None:
    if length > HEADER_LIMIT:
        header.notes.append(f"{length:,} bytes follow the events; the keys in them were not read.")
    elif not header.bare_list:
        read_tail(text, header)


def _assemble(columns: Columns, header: Header, truncated: bool, size: int, scanner: str) -> RawEvents:
    if header.bare_list and len(columns.phase) and not columns.phase.any():
        raise not_a_trace("its list holds objects that are no events")
    return RawEvents(
        phase=columns.phase,
        category=columns.category,
        name=columns.name,
        process=columns.process,
        thread=columns.thread,
        time_ns=columns.time_ns,
        duration_ns=columns.duration_ns,
        flow=columns.flow,
        args_offset=columns.args_offset,
        args_length=columns.args_length,
        fields=columns.fields,
        categories=columns.categories,
        names=columns.names,
        labels=columns.labels,
        texts=columns.texts,
        header=header.keys,
        skipped=columns.skipped,
        first_skipped=columns.first_skipped,
        truncated=truncated,
        bytes_read=size,
        scanner=scanner,
        notes=header.notes,
    )
