"""What a fix needs to know about a graph: what each GPU operation is, its launch, its step and its floor.

Longer than most modules, because its answers build on one another, and every fix asks for them at one place.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from typing import TypeVar, cast

import numpy as np
import polars as pl

from warpline.analyses.gaps import loading_spans
from warpline.analyses.host_time import HostTime
from warpline.analyses.op_calls import OpCalls
from warpline.analyses.steps import covered_before
from warpline.intervals import union
from warpline.kernels import KernelIdentity, identify
from warpline.replay.costs.find import Costs
from warpline.replay.costs.floors import Floors
from warpline.replay.graph.model import CALL, LAUNCH, SEGMENT, THREAD, WORK, Graph
from warpline.replay.known_flow import KnownFlow
from warpline.replay.labels import Labels
from warpline.replay.steps import StepMarks
from warpline.trace import api_names
from warpline.trace.columns import NONE, Bools, Floats, Int64s, grouped, integers
from warpline.trace.names import Names, named_like, names_in
from warpline.trace.nesting import outermost
from warpline.trace.steps import launch_moments, on_device
from warpline.trace.trace import Trace

OP_LEVELS = 6
"""Number of enclosing ops searched for a name."""
AUTOGRAD = "autograd::engine::"
"""How the names of the ops begin around what autograd calls."""


Found = TypeVar("Found")


class Scene:
    """A trace's graph with labelled nodes. Arrays have one entry per node unless documented otherwise."""

    def __init__(self, trace: Trace, graph: Graph, marks: StepMarks, costs: Costs) -> None:
        self.trace, self.graph, self.marks = trace, graph, marks
        self.host, self.device = costs.host, costs.device
        self.is_work: Bools = graph.kind == WORK
        self.work: Int64s = np.flatnonzero(self.is_work)
        self._texts: dict[str, Labels] = {}
        self._numbers: dict[str, Int64s] = {}
        self._floors: dict[str | None, Floats] = {}
        self._under: dict[tuple[str, ...], Bools] = {}
        self._within: dict[str, Bools] = {}
        self._classes: dict[tuple[str, ...], Bools] = {}
        self._found: dict[Callable[[Scene], object], object] = {}
        self._found_among: dict[tuple[Callable[[Scene, Bools], object], bytes], object] = {}

    @cached_property
    def work_of_lane(self) -> dict[int, Int64s]:
        """The operations on each lane that has any, in order."""
        return dict(grouped(self.work, self.graph.lane[self.work]))

    def once(self, find: Callable[[Scene], Found]) -> Found:
        """What a function finds in this scene, which is the same for every trial; an array is not to be changed."""
        if find not in self._found:
            found = find(self)
            if isinstance(found, np.ndarray):
                found.setflags(write=False)
                is_mark = found.dtype == bool and len(found) == len(self.graph)
                self._found[find] = self.mark(found) if is_mark else found
            else:
                self._found[find] = found
        return cast("Found", self._found[find])

    def mark(self, nodes: Bools) -> Bools:
        """Marked nodes that are kept, and not to be changed; where none is, all share one array."""
        found = nodes if nodes.any() else self._no_node
        found.setflags(write=False)
        return found

    @cached_property
    def _no_node(self) -> Bools:
        return np.zeros(len(self.graph), bool)

    def once_for(self, nodes: Bools, find: Callable[[Scene, Bools], Found]) -> Found:
        """What a function finds among these nodes; found once for the same nodes."""
        key = find, nodes.tobytes()
        if key not in self._found_among:
            self._found_among[key] = find(self, nodes)
        return cast("Found", self._found_among[key])

    # Steps.

    @cached_property
    def step(self) -> Int64s:
        """The step in which each node began, or was launched; NONE outside."""
        steps = self.trace.steps_in_view
        moment = self.graph.measured_start.copy()
        if not len(steps):
            return np.zeros(len(self.graph), np.int64)
        starts, ends = integers(steps["start_ns"]), integers(steps["end_ns"])
        if not on_device(steps):
            launched = launch_moments(self.trace.gpu, self.trace.api, int(starts[0]), int(ends[-1]))
            moment[self.work] = launched[self.graph.row[self.work]]
        index = np.searchsorted(starts, moment, side="right") - 1
        inside = (index >= 0) & (moment < ends[-1])
        result: Int64s = np.where(inside, index, NONE)
        return result

    @cached_property
    def in_steps(self) -> Bools:
        """Whether the node belongs to a selected step; for steps found on the device, all CPU nodes do."""
        inside: Bools = self.step != NONE
        if on_device(self.trace.steps):
            inside = inside | ~self.is_work
        return inside

    @property
    def step_count(self) -> int:
        """Number of selected steps."""
        return max(1, self.marks.count)

    # Calls.

    @cached_property
    def call_name(self) -> Labels:
        """Name of the API call of calls and returns; empty elsewhere."""
        calls = np.flatnonzero(~self.is_work & (self.graph.row != NONE))
        return self._labels(names_in(self.trace.api), calls, self.graph.row[calls])

    def _labels(self, column: Names, nodes: Int64s, rows: Int64s) -> Labels:
        """For these nodes the texts of those rows (NONE for none) of a column; empty for all others."""
        names = column.words
        empty = names.index("") if "" in names else len(names)
        number = np.append(np.arange(len(names)), empty)
        codes = np.full(len(self.graph), empty, np.int64)
        codes[nodes] = np.append(number[column.which], empty)[rows]
        return Labels.of([*names, ""][: max(len(names), empty + 1)], codes)

    def calls_like(self, pattern: str) -> Bools:
        """API calls whose name matches."""
        known = self.call_name.where(lambda name: re.search(pattern, name) is not None)
        result: Bools = known & (self.graph.kind == CALL)
        return result

    @cached_property
    def stream_waits(self) -> Bools:
        """Calls that wait for a stream or the device."""
        return self.calls_like(api_names.STREAM_WAIT)

    @cached_property
    def _body_of_segment(self) -> Int64s:
        graph = self.graph
        result = np.full(len(graph), NONE, np.int64)
        edges = (graph.edge_kind == THREAD) & (graph.kind[graph.edge_from] == SEGMENT)
        result[graph.edge_from[edges]] = graph.edge_to[edges]
        return result

    @cached_property
    def segment_of_call(self) -> Int64s:
        """The segment before each call."""
        result = np.full(len(self.graph), NONE, np.int64)
        segments = np.flatnonzero(self._body_of_segment != NONE)
        result[self._body_of_segment[segments]] = segments
        return result

    @cached_property
    def call_of_work(self) -> Int64s:
        """The call that launched each GPU operation, NONE if unknown; for graphs, of each stream's first one."""
        graph = self.graph
        result = np.full(len(graph), NONE, np.int64)
        edges = graph.edge_kind == LAUNCH
        source, target = graph.edge_from[edges], graph.edge_to[edges]
        result[target] = np.where(graph.kind[source] == CALL, source, self._body_of_segment[source])
        return result

    @cached_property
    def launch_moment(self) -> Int64s:
        """Measured launch time of each GPU operation; its own start if no launch is known."""
        moment = self.graph.measured_start.copy()
        rows = self.graph.row[self.work]
        calls = integers(self.trace.gpu["api_id"])[rows]
        starts = np.append(integers(self.trace.api["start_ns"]), 0)
        moment[self.work] = np.where(calls == NONE, moment[self.work], starts[calls])
        return moment

    # Work.

    def work_text(self, column: str) -> Labels:
        """A text column of `gpu` for each node; empty for CPU nodes and where nothing is recorded."""
        if column not in self._texts:
            self._texts[column] = self._labels(names_in(self.trace.gpu, column), self.work, self.graph.row[self.work])
        return self._texts[column]

    def work_number(self, column: str) -> Int64s:
        """A number of `gpu` for each node; 0 for CPU nodes and where nothing is recorded."""
        if column not in self._numbers:
            result = np.zeros(len(self.graph), np.int64)
            result[self.work] = integers(self.trace.gpu[column], 0)[self.graph.row[self.work]]
            result.setflags(write=False)
            self._numbers[column] = result
        return self._numbers[column]

    @cached_property
    def kind(self) -> Labels:
        """kernel, memcpy, memset, graph; empty for CPU nodes."""
        return self.work_text("kind")

    @cached_property
    def name(self) -> Labels:
        """Name of each GPU operation."""
        return self.work_text("name")

    @cached_property
    def _identities(self) -> tuple[list[KernelIdentity], Int64s]:
        """What each different kernel is, and for each node which of them it is; the number beyond for the others."""
        kernels = np.flatnonzero(self.kind == "kernel")
        names, which = np.unique(self.name.codes[kernels], return_inverse=True)
        result = np.full(len(self.graph), len(names), np.int64)
        result[kernels] = which
        known = list(self.name.numbers)
        return [identify(known[name]) for name in names.tolist()], result

    @property
    def kernel_archs(self) -> set[str]:
        """Architectures that the names of kernels contain."""
        return {identity.arch for identity in self._identities[0] if identity.arch}

    def kernels(self, *classes: str) -> Bools:
        """Kernels of these classes."""
        if classes not in self._classes:
            found = self.kernels_where(lambda identity: identity.kernel_class in classes)
            self._classes[classes] = self.mark(found)
        return self._classes[classes]

    def kernels_where(self, test: Callable[[KernelIdentity], bool]) -> Bools:
        """Kernels whose identity passes the test."""
        identities, which = self._identities
        result: Bools = np.array([*map(test, identities), False], bool)[which]
        return result

    @cached_property
    def bytes(self) -> Int64s:
        """Bytes of copies and memsets."""
        return self.work_number("bytes")

    @cached_property
    def op(self) -> Int64s:
        """Row of `ops` around each operation's launch; NONE elsewhere."""
        result = np.full(len(self.graph), NONE, np.int64)
        result[self.work] = integers(self.trace.gpu["op_id"])[self.graph.row[self.work]]
        return result

    @cached_property
    def dataflow(self) -> KnownFlow | None:
        """Which GPU operations share tensors, where `warpline run` recorded it; None elsewhere."""
        return KnownFlow.of(self.trace, self.op)

    def op_column(self, column: str) -> Labels:
        """A text column of the op around each GPU operation; empty without an op."""
        key = f"ops.{column}"
        if key not in self._texts:
            self._texts[key] = self._labels(names_in(self.trace.ops, column), self.work, self.op[self.work])
        return self._texts[key]

    @cached_property
    def op_name(self) -> Labels:
        """Name of the op around each GPU operation."""
        return self.op_column("name")

    @cached_property
    def _op_names(self) -> tuple[dict[str, int], Int64s]:
        """Names of ops with their numbers, and for each op the number of its name."""
        known = names_in(self.trace.ops)
        return {name: number for number, name in enumerate(known.words)}, known.which

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
        parents, levels = np.append(integers(self.trace.ops["parent"]), NONE), [self.op[self.work]]
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
        return np.append(outermost(integers(self.trace.ops["parent"])), NONE)

    @cached_property
    def op_spans(self) -> tuple[Int64s, Int64s, Int64s]:
        """Begin, end and thread of each op."""
        starts, ends, threads = (integers(self.trace.ops[name]) for name in ("start_ns", "end_ns", "thread"))
        return starts, ends, threads

    @cached_property
    def _outermost_ops(self) -> pl.DataFrame:
        return self.trace.ops.with_row_index("row").filter(pl.col("depth") == 0)

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
        result[calls] = integers(self.trace.api["op_id"])[self.graph.row[calls]]
        return result

    @cached_property
    def _segments_of_lane(self) -> dict[int, Int64s]:
        segments = self.graph.nodes(SEGMENT)
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
            ranges = named_like(self.trace.ranges, pattern).drop_nulls(["end_ns", "thread"])
            inside = np.zeros(len(self.graph), bool)
            moment = self.launch_moment
            for start, end in zip(integers(ranges["start_ns"]), integers(ranges["end_ns"]), strict=True):
                inside |= (moment >= start) & (moment < end)
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
