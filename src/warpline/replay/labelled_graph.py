"""What a fix needs to know about a graph: besides its nodes, the ops and ranges around them, and their floors."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TypeVar, cast

import numpy as np
import polars as pl

from warpline.analyses.idle.gaps import loading_spans
from warpline.analyses.idle.host_time import HostTime
from warpline.analyses.op_calls import OpCalls
from warpline.intervals import covered_before, union
from warpline.replay.costs.find import Costs
from warpline.replay.costs.floors import Floors
from warpline.replay.graph.model import Graph, NodeKind
from warpline.replay.known_flow import KnownFlow
from warpline.replay.labelled_nodes import LabelledNodes
from warpline.replay.labels import Labels
from warpline.replay.steps import StepMarks
from warpline.trace.arrays import NONE, Bools, Floats, Int64s, grouped, integers
from warpline.trace.names import named_like
from warpline.trace.nesting import outermost
from warpline.trace.trace import Trace

OP_LEVELS = 6
"""Number of enclosing ops searched for a name."""
AUTOGRAD = "autograd::engine::"
"""How the names of the ops begin around what autograd calls."""


Found = TypeVar("Found")


class LabelledGraph(LabelledNodes):
    """The labelled nodes with their ops, and what fixes found among them, which is found once."""

    def __init__(self, trace: Trace, graph: Graph, marks: StepMarks, costs: Costs) -> None:
        super().__init__(trace, graph, marks)
        self.host, self.device = costs.host, costs.device
        self._floors: dict[str | None, Floats] = {}
        self._under: dict[tuple[str, ...], Bools] = {}
        self._within: dict[str, Bools] = {}
        self._found: dict[Callable[[LabelledGraph], object], object] = {}
        self._found_among: dict[tuple[Callable[[LabelledGraph, Bools], object], bytes], object] = {}

    def once(self, find: Callable[[LabelledGraph], Found]) -> Found:
        """What a function finds in this labelled, which is the same for every trial; an array is not to be changed."""
        if find not in self._found:
            found = find(self)
            if isinstance(found, np.ndarray):
                found.setflags(write=False)
                is_mark = found.dtype == bool and len(found) == len(self.graph)
                self._found[find] = self.mark(found) if is_mark else found
            else:
                self._found[find] = found
        return cast("Found", self._found[find])

    def once_for(self, nodes: Bools, find: Callable[[LabelledGraph, Bools], Found]) -> Found:
        """What a function finds among these nodes; found once for the same nodes."""
        key = find, nodes.tobytes()
        if key not in self._found_among:
            self._found_among[key] = find(self, nodes)
        return cast("Found", self._found_among[key])

    # Ops.

    @cached_property
    def op(self) -> Int64s:
        """Row of `ops` around each operation's launch; NONE elsewhere."""
        result = np.full(len(self.graph), NONE, np.int64)
        result[self.work] = self.trace.gpu.op_id[self.graph.row[self.work]]
        return result

    @cached_property
    def dataflow(self) -> KnownFlow | None:
        """Which GPU operations share tensors, where `warpline run` recorded it; None elsewhere."""
        return KnownFlow.of(self.trace, self.op)

    def op_column(self, column: str) -> Labels:
        """A text column of the op around each GPU operation; empty without an op."""
        key = f"ops.{column}"
        if key not in self._texts:
            self._texts[key] = self._labels(self.trace.ops.column(column), self.work, self.op[self.work])
        return self._texts[key]

    @cached_property
    def op_name(self) -> Labels:
        """Name of the op around each GPU operation."""
        return self.op_column("name")

    @cached_property
    def _op_names(self) -> tuple[dict[str, int], Int64s]:
        """Names of ops with their numbers, and for each op the number of its name."""
        known = self.trace.ops.name
        return {name: number for number, name in enumerate(known.words)}, known.codes

    @property
    def known_ops(self) -> list[str]:
        """The different names of ops."""
        return list(self._op_names[0])

    def _is_named(self, names: tuple[str, ...]) -> Bools:
        """Whether each op has one of these names."""
        numbers, which = self._op_names
        chosen = np.zeros(len(numbers) + 1, bool)
        chosen[[numbers[name] for name in names if name in numbers]] = True
        result: Bools = chosen[which]
        return result

    @cached_property
    def _ops_around(self) -> Int64s:
        """Rows of `ops` around the launch of each of `work`: one row a level, the innermost first, NONE beyond."""
        parents, levels = np.append(self.trace.ops.parent, NONE), [self.op[self.work]]
        while len(levels) < OP_LEVELS:
            levels.append(parents[levels[-1]])
        return np.array(levels)

    def ops_named(self, *names: str) -> Int64s:
        """Rows of `ops` with one of these names."""
        return np.flatnonzero(self._is_named(names))

    def under_op(self, *names: str) -> Bools:
        """GPU operations launched by an op with one of these names, or by an op within it."""
        if names in self._under:
            return self._under[names]
        result = np.zeros(len(self.graph), bool)
        result[self.work] = np.append(self._is_named(names), False)[self._ops_around].any(axis=0)
        self._under[names] = self.mark(result)
        return self._under[names]

    @cached_property
    def roots(self) -> Int64s:
        """The outermost op around each op; NONE for none, at the end."""
        return np.append(outermost(self.trace.ops.parent), NONE)

    @cached_property
    def op_spans(self) -> tuple[Int64s, Int64s, Int64s]:
        """Begin, end and thread of each op."""
        starts, ends, threads = self.trace.ops.start_ns, self.trace.ops.end_ns, self.trace.ops.thread
        return starts, ends, threads

    @cached_property
    def _outermost_ops(self) -> pl.DataFrame:
        return self.trace.stored("ops").with_row_index("row")[np.flatnonzero(self.trace.ops.depth == 0)]

    def root_op_at(self, segments: Int64s) -> Int64s:
        """The outermost op of its thread in whose time each segment's middle lies; NONE outside."""
        rows, threads, starts, ends = (
            integers(self._outermost_ops[name]) for name in ("row", "thread", "start_ns", "end_ns")
        )
        middle = (self.graph.measured_start[segments] + self.graph.measured_end[segments]) // 2
        found = np.full(len(segments), NONE, np.int64)
        rows_of = dict(grouped(np.arange(len(threads)), threads))
        for lane, mine in grouped(np.arange(len(segments)), self.graph.lane[segments]):
            own = rows_of.get(lane)
            if own is None:
                continue
            spot = np.searchsorted(starts[own], middle[mine], side="right") - 1
            inside = (spot >= 0) & (middle[mine] < ends[own][spot])
            found[mine[inside]] = rows[own][spot[inside]]
        return found

    @cached_property
    def root_op(self) -> Int64s:
        """The outermost op around each operation's launch; NONE elsewhere."""
        result: Int64s = self.roots[self.op]
        return result

    @cached_property
    def engine_ops(self) -> Bools:
        """Which ops are autograd's engine at work; a trailing False stands for NONE."""
        names, which = self._op_names
        return np.append(np.array([*(name.startswith(AUTOGRAD) for name in names), False])[which], False)

    @cached_property
    def of_autograd(self) -> Bools:
        """GPU operations that autograd's engine launched."""
        result: Bools = self.engine_ops[self.root_op] & self.is_work
        return result

    @cached_property
    def root_op_of_call(self) -> Int64s:
        """The outermost op around each API call; NONE elsewhere."""
        result: Int64s = self.roots[self.op_of_call]
        return result

    @cached_property
    def op_of_call(self) -> Int64s:
        """Row of `ops` around each API call; NONE elsewhere."""
        result = np.full(len(self.graph), NONE, np.int64)
        calls = np.flatnonzero(~self.is_work & (self.graph.row != NONE))
        result[calls] = self.trace.api.op_id[self.graph.row[calls]]
        return result

    @cached_property
    def _segments_of_lane(self) -> dict[int, Int64s]:
        segments = self.graph.nodes(NodeKind.SEGMENT)
        return dict(grouped(segments, self.graph.lane[segments]))

    def covered(self, starts: Int64s, ends: Int64s, thread: Int64s | None = None) -> Floats:
        """Share of each CPU segment that lies within any of these intervals (of its own thread, where given)."""
        graph, result = self.graph, np.zeros(len(self.graph))
        for lane, nodes in self._segments_of_lane.items():
            mine = np.ones(len(starts), bool) if thread is None else thread == lane
            if not mine.any():
                continue
            spans = union(starts[mine], ends[mine])
            begin, end = graph.measured_start[nodes], graph.measured_end[nodes]
            before, after = np.split(covered_before(spans, np.concatenate([begin, end])), 2)
            result[nodes] = (after - before) / np.maximum(end - begin, 1)
        return result

    def within_ranges(self, pattern: str) -> Bools:
        """Nodes of threads that began, and work that was launched, within a range whose name matches."""
        if pattern not in self._within:
            ranges = named_like(self.trace.stored("ranges"), pattern)
            inside = np.zeros(len(self.graph), bool)
            moment = self.launch_moment
            spans = [integers(ranges[column]).tolist() for column in ("start_ns", "end_ns", "thread")]
            for start, end, thread in zip(*spans, strict=True):
                if thread != NONE:
                    inside |= (moment >= start) & (moment < end)  # nothing, if its end is not known
            inside.setflags(write=False)
            self._within[pattern] = inside
        return self._within[pattern]

    @cached_property
    def op_share(self) -> Floats:
        """Share of each segment that an op covers (outermost ops of its thread)."""
        return self.covered(*(integers(self._outermost_ops[name]) for name in ("start_ns", "end_ns", "thread")))

    @cached_property
    def host_time(self) -> HostTime:
        """What each thread was doing in the steps in view."""
        return HostTime(self.trace)

    @cached_property
    def input_share(self) -> Floats:
        """Share of each segment within steps in which the program loads data."""
        found = loading_spans(HostTime(self.trace.whole(), self.host_time.threads))
        if not found:
            return np.zeros(len(self.graph))
        starts = np.concatenate([spans.starts for spans in found.values()])
        ends = np.concatenate([spans.ends for spans in found.values()])
        threads = np.concatenate([np.full(len(spans), thread) for thread, spans in found.items()])
        share = self.covered(starts, ends, threads)
        result: Floats = np.where(self.in_steps, share, 0.0)
        return result

    # Floors.

    @cached_property
    def op_calls(self) -> OpCalls:
        """The ops as they were called."""
        return OpCalls(self.trace)

    @cached_property
    def floors(self) -> Floors:
        """Minimum times of the GPU operations."""
        return Floors(self.trace, self.op_calls)

    def floor_ns(self, dtype: str | None = None) -> Floats:
        """Minimum time of each GPU operation, at its own or another precision; 0 if unknown, and for CPU nodes."""
        if dtype not in self._floors:
            result = np.zeros(len(self.graph))
            result[self.work] = self.floors.least_ns(dtype)[self.graph.row[self.work]]
            result.setflags(write=False)
            self._floors[dtype] = result
        return self._floors[dtype]
