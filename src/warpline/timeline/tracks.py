"""Which tracks a trace has: the streams, waits, idle time and ranges of each GPU, and the calls of each thread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
from msgspec import Struct

from warpline.analyses.idle.gaps import Gaps
from warpline.trace.arrays import NONE, Int64s, grouped
from warpline.trace.schema import Api, Gpu, Ops, OsRuntime, Python, Syncs
from warpline.trace.trace import Trace

TrackKind = Literal["gpu", "syncs", "idle", "ranges", "python", "ops", "api", "osrt"]
CallKind = Literal["python", "ops", "api", "osrt"]
CALL_KINDS: tuple[CallKind, ...] = ("python", "ops", "api", "osrt")
THREAD_LABELS: dict[TrackKind, str] = {
    "ranges": "ranges",
    "python": "Python",
    "ops": "ops",
    "api": "CUDA API",
    "osrt": "OS runtime",
}
"""Tracks of a thread, outermost first."""
EVERY_STREAM = 0xFFFFFFFF
"""CUPTI's number for no stream (CUPTI_SYNCHRONIZATION_INVALID_VALUE): a wait for the whole device."""


class BarTrack(Struct, frozen=True):
    """The bars of one kind of one device or thread, by start, a bar before those within it."""

    kind: TrackKind
    """The table whose rows the bars are; the bars of `idle` are the merged parts of a device's gaps."""
    label: str
    rows: Int64s
    """Of each bar, its row in that table."""
    starts: Int64s
    ends: Int64s
    device: int | None = None
    thread: int | None = None


def device_tracks(trace: Trace, gaps: Sequence[Gaps]) -> Iterator[BarTrack]:
    """Idle time, streams and ranges of each device, in rising order."""
    found: dict[int, list[BarTrack]] = {}
    for track in (*map(idle_track, gaps), *stream_tracks(trace), *range_tracks(trace)):
        if track.device is not None:
            found.setdefault(track.device, []).append(track)
    for device in sorted(found):
        yield from found[device]


def thread_tracks(trace: Trace) -> Iterator[BarTrack]:
    """The tracks of each thread, that with the most bars first, in the order of `THREAD_LABELS`."""
    found: dict[int, list[BarTrack]] = {}
    calls = (track for kind in CALL_KINDS for track in call_tracks(trace, kind))
    for track in (*range_tracks(trace), *calls):
        if track.thread is not None:
            found.setdefault(track.thread, []).append(track)
    bars = {thread: sum(len(track.rows) for track in tracks) for thread, tracks in found.items()}
    for thread in sorted(found, key=lambda one: (-bars[one], one)):
        yield from found[thread]


def stream_tracks(trace: Trace) -> Iterator[BarTrack]:
    """What each stream ran, by device and stream; activity without a stream comes last."""
    for device, stream, rows in _streams(trace.gpu, trace.gpu.stream):
        label = f"stream {stream}" if stream != NONE else "no stream recorded"
        yield BarTrack("gpu", label, *_in_order(rows, trace.gpu.start_ns, trace.gpu.end_ns), device=device)


def sync_tracks(trace: Trace) -> Iterator[BarTrack]:
    """What the device recorded of synchronisation, by device and stream."""
    syncs = trace.syncs
    lasting = syncs.end_ns > syncs.start_ns
    for device, stream, rows in _streams(syncs, np.where(syncs.stream == EVERY_STREAM, NONE, syncs.stream)):
        label = f"waits {stream}" if stream != NONE else "waits"
        if lasting[rows].any():
            yield BarTrack("syncs", label, *_in_order(rows[lasting[rows]], syncs.start_ns, syncs.end_ns), device=device)


def idle_track(gaps: Gaps) -> BarTrack:
    """Idle time by cause: each part of each gap that has one cause."""
    spans = gaps.spans
    rows = np.arange(len(spans.starts))
    return BarTrack("idle", "idle, by cause", rows, spans.starts, spans.ends, device=gaps.device)


def range_tracks(trace: Trace) -> Iterator[BarTrack]:
    """The ranges of each thread, and their projections on each device; one that is never closed ends with the trace."""
    ranges = trace.ranges
    last = max(int(table.end_ns.max(initial=0)) for table in (trace.gpu, ranges, trace.api, trace.ops))
    ends = np.maximum(np.where(ranges.end_ns == NONE, last, ranges.end_ns), ranges.start_ns)
    on_device = ranges.style.equal("gpu")
    threads, devices = np.flatnonzero(ranges.thread != NONE), np.flatnonzero(on_device)
    for thread, rows in grouped(threads, ranges.thread[threads]):
        yield BarTrack("ranges", "ranges", *_in_order(rows, ranges.start_ns, ends), thread=thread)
    for device, rows in grouped(devices, np.maximum(ranges.device[devices], 0)):
        yield BarTrack("ranges", "ranges", *_in_order(rows, ranges.start_ns, ends), device=device)


def call_tracks(trace: Trace, kind: CallKind) -> Iterator[BarTrack]:
    """The Python frames, ops, API calls or OS runtime calls of each thread."""
    tables: dict[str, Python | Ops | Api | OsRuntime] = {
        "python": trace.python,
        "ops": trace.ops,
        "api": trace.api,
        "osrt": trace.osrt,
    }
    table = tables[kind]
    label = "HIP API" if kind == "api" and trace.api.name.like("^hip").any() else THREAD_LABELS[kind]
    for thread, rows in grouped(np.arange(len(table)), np.maximum(table.thread, 0)):
        yield BarTrack(kind, label, *_in_order(rows, table.start_ns, table.end_ns), thread=thread)


def _streams(table: Gpu | Syncs, streams: Int64s) -> Iterator[tuple[int, int, Int64s]]:
    """Device, stream and rows of each stream; rows without a device are the first one's."""
    for device, rows in grouped(np.arange(len(table)), np.maximum(table.device, 0)):
        found = list(grouped(rows, streams[rows]))
        for stream, mine in sorted(found, key=lambda one: (one[0] == NONE, one[0])):
            yield device, stream, mine


def _in_order(rows: Int64s, starts: Int64s, ends: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """The rows by start, the longest first, and the start and end of each."""
    rows = rows[np.lexsort((-ends[rows], starts[rows]))]
    return rows, starts[rows], ends[rows]
