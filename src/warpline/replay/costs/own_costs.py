"""Costs of the host as one trace shows them: launches, ops, calls, graph launches and compiled regions.

Only what happens close together tells: after a pause, caches are cold and a launch is slow on any host. Recorded times
hold the cost of recording, which is taken out: of a launch, half lies within the call and half behind it. Other calls
keep their recorded times, since the profiler reads the clock just before and after them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Protocol

import numpy as np
from msgspec import Struct

from warpline.api_names import (
    ALLOCATION,
    BEGIN_CAPTURE,
    COMPILED_REGION,
    COPY,
    END_CAPTURE,
    FREE,
    GRAPH_LAUNCH,
    GRAPH_MAKING,
    HOST_WAIT,
    KERNEL_LAUNCH,
    MEMSET,
)
from warpline.replay.costs.cost import Cost
from warpline.trace.arrays import Bools, Floats, Int64s
from warpline.trace.launches import nodes_of_calls
from warpline.trace.schema import Ops, Python
from warpline.trace.trace import Trace

MIN_SAMPLES = 10
CLOSE_LAUNCHES = 6.0
"""A call follows another closely within the time of this many launches: an op between them takes two to four."""
MIN_LEFT = 0.25
"""Recording is three quarters of a recorded time at most: the slowest recorded steps take four times the bare ones."""
NOT_PLAIN = "|".join(
    (
        *(KERNEL_LAUNCH, GRAPH_LAUNCH, GRAPH_MAKING, BEGIN_CAPTURE, END_CAPTURE),
        *(HOST_WAIT, COPY, MEMSET, ALLOCATION, FREE),
    )
)


class EventTimes(Struct, frozen=True):
    """What recording one event of each kind costs, at one level of a range."""

    op_ns: float
    call_ns: float
    frame_ns: float
    node_ns: float


class RecordingCost(Protocol):
    """What recording costs, with a range."""

    def at(self, level: int) -> EventTimes:
        """The low (0), expected (1) or high (2) cost."""


class OwnCosts:
    """Samples of one trace, by the name of their cost in `HostCosts`."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._finders: dict[str, tuple[Callable[[EventTimes], Floats], str]] = {
            "launch": (self._launches, "launches"),
            "op": (self._dispatch, "ops between launches"),
            "call": (self._calls, "other API calls"),
            "graph_launch": (self._graph_launches, "graph launches"),
            "region": (self._regions, "compiled regions"),
        }
        worked = np.zeros(len(trace.api) + 1, dtype=bool)
        worked[trace.gpu.api_id] = True  # a launch into a graph that is being captured starts nothing
        self._row = np.lexsort((trace.api.start_ns, trace.api.thread))  # by thread, then by time
        api = trace.api[self._row]
        self._start, self._end, self._thread = api.start_ns, api.end_ns, api.thread
        self._length = (self._end - self._start).astype(np.float64)
        kinds = (KERNEL_LAUNCH, GRAPH_LAUNCH, NOT_PLAIN)
        launch, self._graph, special = (api.name.like(pattern) for pattern in kinds)
        self._launch, self._plain = launch & worked[self._row], ~special
        self._close = self._follows_closely()
        self.launch_ns = self._recorded_launch_ns()
        """Lower quartile of the recorded kernel launches; None if the trace has too few."""

    def cost(self, name: str, recording: RecordingCost) -> Cost | None:
        """A cost of `HostCosts` measured in this trace; None if it has too few samples.

        The range holds both the spread of the samples and the doubt about what recording cost them.
        """
        if name not in self._finders or (self.launch_ns is None and not self._graph.any()):
            return None
        find, what = self._finders[name]
        low, middle, high = (np.sort(find(recording.at(level))) for level in (2, 1, 0))
        count = len(middle)
        if count < MIN_SAMPLES or not middle[count // 2]:  # a file in whole microseconds shows short calls as 0
            return None
        least, most = float(low[count // 4]), float(high[min(3 * count // 4, count - 1)])
        return Cost(least, float(middle[count // 2]), most, f"this trace: {count:,} {what}")

    def _follows_closely(self) -> Bools:
        close = np.zeros(len(self._start), dtype=bool)
        if self._launch.any():
            limit = CLOSE_LAUNCHES * float(np.median(self._length[self._launch]))
            close[1:] = (self._start[1:] - self._end[:-1] <= limit) & (self._thread[1:] == self._thread[:-1])
        return close

    def _recorded_launch_ns(self) -> float | None:
        close = self._launch & self._close
        lengths = self._length[close if close.sum() >= MIN_SAMPLES else self._launch]
        return float(np.quantile(lengths, 0.25)) if len(lengths) >= MIN_SAMPLES else None

    def _launches(self, recording: EventTimes) -> Floats:
        return _bare(self._length[self._launch & self._close], recording.call_ns / 2)

    def _calls(self, recording: EventTimes) -> Floats:
        return self._length[self._plain & self._close]

    def _dispatch(self, recording: EventTimes) -> Floats:
        """CPU time between two launches with at least one op between them."""
        taken, ops, frames = self._between_launches
        cost = ops * recording.op_ns + frames * recording.frame_ns + recording.call_ns / 2
        has_ops = ops > 0
        return _bare(taken[has_ops], cost[has_ops])

    @cached_property
    def _between_launches(self) -> tuple[Floats, Int64s, Int64s]:
        """For each launch that closely follows another: the time between them, and the ops and frames begun in it."""
        second = np.flatnonzero(self._launch[1:] & self._launch[:-1] & self._close[1:]) + 1
        begin, end, thread = self._end[second - 1], self._start[second], self._thread[second]
        ops, frames = (self._begun(table, thread, begin, end) for table in (self._trace.ops, self._trace.python))
        return (end - begin).astype(np.float64), ops, frames

    def _graph_launches(self, recording: EventTimes) -> Floats:
        return _bare(self._length[self._graph], self._nodes * recording.node_ns)

    @cached_property
    def _nodes(self) -> Floats:
        """Nodes of each launched graph."""
        return nodes_of_calls(self._trace.gpu, self._trace.api)[self._row[self._graph]].astype(np.float64)

    def _regions(self, recording: EventTimes) -> Floats:
        """Time of compiled regions before their first and after their last API call."""
        samples = []
        for thread, begin, end in self._compiled_regions:
            inside = np.flatnonzero((self._thread == thread) & (self._start >= begin) & (self._end <= end))
            if not len(inside):
                continue
            edges = np.array([begin, int(self._end[inside[-1]])]), np.array([int(self._start[inside[0]]), end])
            threads = np.full(2, thread)
            cost = self._begun(self._trace.ops, threads, *edges).sum() * recording.op_ns
            cost += self._begun(self._trace.python, threads, *edges).sum() * recording.frame_ns
            samples.append((float((edges[1] - edges[0]).sum()), cost + recording.call_ns / 2))
        recorded = np.array(samples, np.float64).reshape(-1, 2)
        return _bare(recorded[:, 0], recorded[:, 1])

    @cached_property
    def _compiled_regions(self) -> list[tuple[int, int, int]]:
        """Thread, start and end."""
        regions = self._trace.ops[self._trace.ops.name.like(COMPILED_REGION)]
        columns = (regions.thread.tolist(), regions.start_ns.tolist(), regions.end_ns.tolist())
        return list(zip(*columns, strict=True))

    def _begun(self, table: Ops | Python, threads: Int64s, begin: Int64s, end: Int64s) -> Int64s:
        """How many rows of a table start on each thread between two moments."""
        owner, start = table.thread, table.start_ns
        result = np.zeros(len(threads), np.int64)
        for thread in np.unique(threads):
            moments, here = np.sort(start[owner == thread]), threads == thread
            result[here] = np.searchsorted(moments, end[here]) - np.searchsorted(moments, begin[here])
        return result


def _bare(recorded: Floats, recording: Floats | float) -> Floats:
    """Recorded times without the cost of recording."""
    return np.maximum(recorded - recording, MIN_LEFT * recorded)
