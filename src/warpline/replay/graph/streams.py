"""The GPU side of the graph: work in stream order, and the delays that the trace itself shows.

Two delays matter. Work that finds its stream empty begins a little after its launching call returns (1.7 µs, give or
take 0.2, on an H200: far steadier than counted from the call's begin). Work that waits in the queue begins a little
after the work before it (about 1.5 µs on an H200). Both are measured per trace and kind of work.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any

import numpy as np
from msgspec import Struct

from warpline.replay.costs.device import DeviceCosts
from warpline.replay.graph.threads import TopCalls
from warpline.trace.arrays import LONG_AGO, NONE, Bools, Floats, Int64s, combinations
from warpline.trace.launches import graph_calls
from warpline.trace.schema import MIGRATION
from warpline.trace.trace import Trace

QUEUED_IN_STARTS = 6.0
"""Work counts as queued when its call returned this long before the work ahead of it ended, in times of what a launch
takes to the device."""
ORDINARY = 4.0
"""Delays beyond this many medians have another cause and say nothing about the hardware."""
LEAST_ORDINARY_IN_STARTS, MOST_ORDINARY_IN_STARTS = 5.0, 60.0
"""The same in times of what a launch takes to the device: shorter delays may have no other cause, longer ones have."""
ENOUGH, MANY = 3, 20
"""Samples of a pair of kinds that are worth a delay of their own: their median, and of many their mean, which does not
drift where a file counts in whole microseconds."""
NEARLY = 0.1
"""Within a graph launch, work that begins this little before other work ends (a share of it, a queue gap at most)
follows it: clocks tick in steps of 32 ns, and a kernel may begin while the last blocks of the one before it drain."""
Average = Callable[[Any], Any]


class WorkKind(IntEnum):
    """What a device ran, by the delays that it has."""

    KERNEL = 0
    MEMCPY = 1
    MEMSET = 2
    GRAPH = 3
    """The first work of a CUDA-graph launch, or its one bar."""
    NODE = 4
    """What follows within that launch."""
    DECOMPRESS = 5

    @classmethod
    def of(cls, name: str) -> WorkKind:
        """The kind that `gpu` calls so; an unknown one is like a kernel."""
        return cls[name.upper()] if name.upper() in cls.__members__ else cls.KERNEL


class Works(Struct, frozen=True):
    """Work by stream and start time."""

    row: Int64s
    lane: Int64s
    start: Int64s
    end: Int64s
    call: Int64s
    """Position of the launching call in `TopCalls`, or NONE."""
    kind: Int64s
    """A `WorkKind`."""
    plain_kind: Int64s
    """The same without regard to graphs."""
    previous: Int64s
    """The work that must end first on the same stream, or NONE."""
    in_launch: Bools
    """Whether `previous` belongs to the same CUDA-graph launch."""
    streams: list[tuple[int, int, int, int]]
    """Process, device, context and stream of each lane."""


class Delays(Struct, frozen=True):
    """Measured delays by kind."""

    launch: Floats
    queue: Floats
    queue_of: Floats
    """Of each work, by its kind and the kind of the work before it: a kernel after a memset in a graph waits longer."""


def stream_works(trace: Trace, calls: TopCalls, device: DeviceCosts) -> Works:
    """All work but unified-memory migrations, which no stream orders."""
    rows = np.flatnonzero(~trace.gpu.copy_kind.like(MIGRATION))
    gpu = trace.gpu[rows]
    keys = (gpu.process, gpu.device, gpu.context, gpu.stream)
    one_of_each, lane = combinations(*keys)
    order = np.lexsort((gpu.end_ns, gpu.start_ns, lane))
    rows, gpu, lane = rows[order], gpu[order], lane[order]
    launch = graph_calls(trace.gpu, trace.api)[rows]
    previous, in_launch = _previous(lane, gpu.start_ns, gpu.end_ns, launch, device.kernel_gap.low)
    plain = gpu.kind.numbers(WorkKind.of, WorkKind.KERNEL)
    return Works(
        row=rows,
        lane=lane,
        start=gpu.start_ns,
        end=gpu.end_ns,
        call=np.append(calls.top_of, NONE)[gpu.api_id],
        kind=np.where(in_launch, WorkKind.NODE, np.where(launch != NONE, WorkKind.GRAPH, plain)),
        plain_kind=plain,
        previous=previous,
        in_launch=in_launch,
        streams=list(zip(*(key[one_of_each].tolist() for key in keys), strict=True)),
    )


def _previous(lane: Int64s, start: Int64s, end: Int64s, launch: Int64s, shortest_gap_ns: float) -> tuple[Int64s, Bools]:
    """The work before each on its stream. Branches of one graph launch run side by side: there, the last that had
    (nearly) ended counts, and the first of each branch follows what was on the stream before the launch."""
    previous = np.arange(len(lane)) - 1
    if len(lane):
        previous[np.concatenate([[True], np.diff(lane) != 0])] = NONE
    in_launch = (previous != NONE) & (launch != NONE) & (np.append(launch, NONE)[previous] == launch)
    for first, beyond in _launches(launch, lane):
        ends = end[first:beyond]
        nearly = ends - np.minimum(shortest_gap_ns, (ends - start[first:beyond]) * NEARLY).astype(np.int64)
        by_end = np.argsort(nearly, kind="stable")
        # The last that had ended when each began, and that stands before it: clocks may show it the other way round.
        ended = np.searchsorted(nearly[by_end], start[first:beyond], side="right") - 1
        own = np.where(ended >= 0, first + by_end[np.maximum(ended, 0)], NONE)
        own = np.where(own < np.arange(first, beyond), own, NONE)
        before = previous[first]
        previous[first:beyond] = np.where(own != NONE, own, before)
        in_launch[first:beyond] = own != NONE
        if beyond < len(lane) and lane[beyond] == lane[first]:
            previous[beyond] = first + int(ends.argmax())
    return previous, in_launch


def _launches(launch: Int64s, lane: Int64s) -> list[tuple[int, int]]:
    """Runs of several pieces of work from one graph launch on one stream."""
    if not len(launch):
        return []
    change = np.flatnonzero((np.diff(launch) != 0) | (np.diff(lane) != 0)) + 1
    begins, ends = np.concatenate([[0], change]), np.concatenate([change, [len(launch)]])
    several = (launch[begins] != NONE) & (ends - begins > 1)
    return list(zip(begins[several].tolist(), ends[several].tolist(), strict=True))


def measured_delays(works: Works, calls: TopCalls, blocking: Bools, device: DeviceCosts) -> Delays:
    """Launch latency and queue gap by kind; `blocking` marks calls that wait for their own work, which say nothing."""
    linked, start_ns = works.call != NONE, device.launch_to_start.expected
    call_start = np.append(calls.start, 0)[works.call]
    call_end = np.append(calls.end, 0)[works.call]
    before_end = np.where(works.previous == NONE, LONG_AGO, np.append(works.end, 0)[works.previous])
    sample = linked & ~np.append(blocking, False)[works.call]
    found_empty = sample & (call_start >= before_end) & ~works.in_launch
    queued = (linked & (call_end + QUEUED_IN_STARTS * start_ns < before_end)) | works.in_launch
    launch = _by_kind(works, works.start - call_end, found_empty, start_ns, start_ns, _lower_quartile)
    gap, sample = works.start - before_end, queued & (works.previous != NONE)
    queue = _by_kind(works, gap, sample, device.kernel_gap.expected, start_ns, np.mean)
    queue_of = queue[works.kind]
    # One number for the kind, the kind before it, and whether both belong to one graph launch.
    pair = works.plain_kind * len(WorkKind) + np.where(works.previous == NONE, NONE, works.plain_kind[works.previous])
    pair = 2 * pair + works.in_launch
    for one in np.unique(pair[sample]):
        alike = pair == one
        if (alike & sample).sum() >= ENOUGH:
            average = np.mean if (alike & sample).sum() >= MANY else np.median
            queue_of[alike] = _ordinary(gap[alike & sample], 0.0, start_ns, average)
    return Delays(launch, queue, queue_of)


def _lower_quartile(delay: Int64s) -> float:
    """Launches that found their stream empty may still wait for something else: the quicker ones tell the latency."""
    return float(np.percentile(delay, 25, method="lower"))


def _by_kind(works: Works, delay: Int64s, sample: Bools, default: float, start_ns: float, average: Average) -> Floats:
    """Average ordinary delay of each kind; a kind without samples takes that of all, a trace without, the default."""
    overall = _ordinary(delay[sample], default, start_ns, average)
    own = [delay[sample & (works.kind == kind)] for kind in WorkKind]
    return np.array([_ordinary(part, overall, start_ns, average) for part in own], np.float64)


def _ordinary(delay: Int64s, default: float, start_ns: float, average: Average) -> float:
    if not len(delay):
        return default
    least, most = LEAST_ORDINARY_IN_STARTS * start_ns, MOST_ORDINARY_IN_STARTS * start_ns
    limit = min(max(ORDINARY * abs(float(np.median(delay))), least), most)
    usual = delay[np.abs(delay) <= limit]
    return float(average(usual)) if len(usual) else default
