"""A graph whose nodes are labelled with what the trace says of them: steps, calls, ops, ranges, kernels and floors."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, wraps
from typing import Concatenate, ParamSpec, TypeVar, cast

import numpy as np

from warpline import api_names
from warpline.analyses.idle.host_time import HostTime
from warpline.analyses.op_calls import OpCalls
from warpline.capture.run_folder import LoaderWork, loader_work
from warpline.intervals import LaneSpans, covered_before, union
from warpline.kernels import KernelIdentity, identify
from warpline.replay.costs.find import Costs
from warpline.replay.costs.floors import Floors
from warpline.replay.graph.model import EdgeKind, Graph, NodeKind
from warpline.replay.graph.threads import engine_threads
from warpline.replay.known_flow import KnownFlow
from warpline.replay.steps import StepMarks
from warpline.trace.arrays import NONE, Bools, Floats, Int64s, containing, grouped
from warpline.trace.launches import launch_moments, launched_ns
from warpline.trace.nesting import outermost, totals
from warpline.trace.schema import Ops, Python, Ranges
from warpline.trace.steps.choice import on_device
from warpline.trace.table import Names, filled
from warpline.trace.trace import Trace

OP_LEVELS = 6
"""Number of enclosing ops searched for a name."""
AUTOGRAD = "^autograd::engine::"
"""How the names of the ops begin around what autograd calls."""

About = ParamSpec("About")
Found = TypeVar("Found")


def _once(
    method: Callable[Concatenate[LabelledGraph, About], Found],
) -> Callable[Concatenate[LabelledGraph, About], Found]:
    """The method is called once for the same arguments, as `cached_property` is for none."""

    @wraps(method)
    def found(graph: LabelledGraph, /, *about: About.args, **more: About.kwargs) -> Found:
        return graph.once(method, *about, **more)

    return found


class LabelledGraph:
    """A trace's graph, and what fixes need to know of its nodes; everything is found once.

    Arrays and names have one entry per node unless documented otherwise, and are not to be changed. A GPU operation is
    also called work.
    """

    def __init__(self, trace: Trace, graph: Graph, marks: StepMarks, costs: Costs) -> None:
        self.trace, self.graph, self.marks = trace, graph, marks
        self.host, self.device = costs.host, costs.device
        self.is_work: Bools = graph.kind == NodeKind.WORK
        self.work: Int64s = np.flatnonzero(self.is_work)
        """The GPU operations."""
        self._gpu_row: Int64s = np.where(self.is_work, graph.row, NONE)
        """Row of `gpu`; NONE for CPU nodes."""
        self._api_row: Int64s = np.where(self.is_work, NONE, graph.row)
        """Row of `api` of calls and returns; NONE elsewhere."""
        self._found: dict[tuple[object, ...], object] = {}

    def once(
        self, find: Callable[Concatenate[LabelledGraph, About], Found], *about: About.args, **more: About.kwargs
    ) -> Found:
        """What a function finds in this graph; called once for the same arguments, since every trial asks again."""
        key = find, *about, *more.items()
        if key not in self._found:
            found = find(self, *about, **more)
            if isinstance(found, np.ndarray):
                found.setflags(write=False)
            self._found[key] = found
        return cast("Found", self._found[key])

    @cached_property
    def loader_work(self) -> LoaderWork | None:
        """What the workers of a DataLoader do for a step, if the run that made the trace measured it."""
        return loader_work(self.trace.file)

    # Steps.

    @cached_property
    def step(self) -> Int64s:
        """The step in which each node began, or was launched; NONE outside."""
        steps = self.trace.steps_in_view
        if not len(steps):
            return np.zeros(len(self.graph), np.int64)
        starts, end = steps.start_ns, int(steps.end_ns[-1])
        moment = self.graph.measured_start.copy()
        if not on_device(steps):
            launched = launch_moments(self.trace.gpu, self.trace.api, int(starts[0]), end)
            moment[self.work] = launched[self.graph.row[self.work]]
        index = np.searchsorted(starts, moment, side="right") - 1
        return np.where((index >= 0) & (moment < end), index, NONE)

    @cached_property
    def has_step(self) -> Bools:
        """Whether the node began, or was launched, in a selected step."""
        return self.step != NONE

    @cached_property
    def in_steps(self) -> Bools:
        """Whether the node belongs to a selected step; for steps found on the device, all CPU nodes do."""
        return self.has_step | ~self.is_work if on_device(self.trace.all_steps) else self.has_step

    @property
    def step_count(self) -> int:
        """Number of selected steps."""
        return max(1, self.marks.count)

    # Calls.

    @cached_property
    def call_name(self) -> Names:
        """The API call of calls and returns."""
        return self.trace.api.name.at(self._api_row)

    def calls_like(self, pattern: str) -> Bools:
        """API calls whose name matches."""
        return self.call_name.like(pattern) & (self.graph.kind == NodeKind.CALL)

    @cached_property
    def stream_waits(self) -> Bools:
        """Calls that wait for a stream or the device."""
        return self.calls_like(api_names.STREAM_WAIT)

    @cached_property
    def _call_of_segment(self) -> Int64s:
        graph = self.graph
        result = np.full(len(graph), NONE, np.int64)
        edges = (graph.edge_kind == EdgeKind.THREAD) & (graph.kind[graph.edge_from] == NodeKind.SEGMENT)
        result[graph.edge_from[edges]] = graph.edge_to[edges]
        return result

    @cached_property
    def segment_of_call(self) -> Int64s:
        """The segment before each call."""
        result = np.full(len(self.graph), NONE, np.int64)
        segments = np.flatnonzero(self._call_of_segment != NONE)
        result[self._call_of_segment[segments]] = segments
        return result

    @cached_property
    def call_of_work(self) -> Int64s:
        """The call that launched each GPU operation, NONE if unknown; for graphs, of each stream's first one."""
        graph = self.graph
        result = np.full(len(graph), NONE, np.int64)
        edges = graph.edge_kind == EdgeKind.LAUNCH
        source, target = graph.edge_from[edges], graph.edge_to[edges]
        result[target] = np.where(graph.kind[source] == NodeKind.CALL, source, self._call_of_segment[source])
        return result

    @cached_property
    def launch_moment(self) -> Int64s:
        """Measured launch time of each GPU operation, its own start if no launch is known; the start of other nodes."""
        moment = self.graph.measured_start.copy()
        moment[self.work] = launched_ns(self.trace.gpu, self.trace.api)[self.graph.row[self.work]]
        return moment

    # GPU operations.

    @cached_property
    def work_of_lane(self) -> dict[int, Int64s]:
        """The operations on each lane that has any, in order."""
        return dict(grouped(self.work, self.graph.lane[self.work]))

    @cached_property
    def kind(self) -> Names:
        """kernel, memcpy, memset, graph."""
        return self.trace.gpu.kind.at(self._gpu_row)

    @cached_property
    def is_kernel(self) -> Bools:
        """Whether the node is a kernel."""
        return self.kind.equal("kernel")

    @cached_property
    def is_copy(self) -> Bools:
        """Whether the node is a copy by the copy engine (memcpy)."""
        return self.kind.equal("memcpy")

    @cached_property
    def name(self) -> Names:
        """The name of each GPU operation."""
        return self.trace.gpu.name.at(self._gpu_row)

    @cached_property
    def copy_kind(self) -> Names:
        """The direction of each copy."""
        return self.trace.gpu.copy_kind.at(self._gpu_row)

    @cached_property
    def source_memory(self) -> Names:
        """The memory that each copy reads."""
        return self.trace.gpu.source_memory.at(self._gpu_row)

    @cached_property
    def target_memory(self) -> Names:
        """The memory that each copy writes."""
        return self.trace.gpu.target_memory.at(self._gpu_row)

    @_once
    def work_number(self, column: str) -> Int64s:
        """A number of `gpu`; 0 for CPU nodes and where nothing is recorded."""
        return np.append(filled(self.trace.gpu.column(column), 0), 0)[self._gpu_row]

    @property
    def bytes(self) -> Int64s:
        """Bytes of copies and memsets."""
        return self.work_number("bytes")

    @cached_property
    def _identities(self) -> tuple[list[KernelIdentity], Int64s]:
        """What each different kernel is, and for each node which of them it is; the number beyond for the others."""
        kernels = np.flatnonzero(self.is_kernel)
        codes, which = np.unique(self.name.codes[kernels], return_inverse=True)
        result = np.full(len(self.graph), len(codes), np.int64)
        result[kernels] = which
        return [identify(self.name.words[code]) for code in codes.tolist()], result

    @cached_property
    def kernel_op(self) -> Names:
        """What each kernel does, as far as its name says it."""
        return self.name.renamed(lambda name: identify(name).op)

    @property
    def kernel_archs(self) -> set[str]:
        """Architectures that the names of kernels contain."""
        return {identity.arch for identity in self._identities[0] if identity.arch}

    @_once
    def kernels(self, *classes: str) -> Bools:
        """Kernels of these classes."""
        return self.kernels_where(lambda identity: identity.kernel_class in classes)

    def kernels_where(self, test: Callable[[KernelIdentity], bool]) -> Bools:
        """Kernels whose identity passes the test."""
        identities, which = self._identities
        return np.array([*map(test, identities), False], bool)[which]

    # Ops around GPU operations and calls.

    @cached_property
    def op(self) -> Int64s:
        """Row of `ops` around each operation's launch; NONE elsewhere."""
        return np.append(self.trace.gpu.op_id, NONE)[self._gpu_row]

    @cached_property
    def op_name(self) -> Names:
        """The op around each GPU operation."""
        return self.trace.ops.name.at(self.op)

    @cached_property
    def op_shapes(self) -> Names:
        """The input shapes of the op around each GPU operation, as JSON text."""
        return self.trace.ops.shapes.at(self.op)

    @cached_property
    def op_dtypes(self) -> Names:
        """Its input types, likewise."""
        return self.trace.ops.dtypes.at(self.op)

    @cached_property
    def op_strides(self) -> Names:
        """Its input strides, likewise."""
        return self.trace.ops.strides.at(self.op)

    @cached_property
    def op_of_call(self) -> Int64s:
        """Row of `ops` around each API call; NONE elsewhere."""
        return np.append(self.trace.api.op_id, NONE)[self._api_row]

    @cached_property
    def roots(self) -> Int64s:
        """The outermost op around each op (one entry per row of `ops`, and NONE for none)."""
        return np.append(outermost(self.trace.ops.parent), NONE)

    @cached_property
    def root_op(self) -> Int64s:
        """The outermost op around each operation's launch; NONE elsewhere."""
        return self.roots[self.op]

    @cached_property
    def root_op_of_call(self) -> Int64s:
        """The outermost op around each API call; NONE elsewhere."""
        return self.roots[self.op_of_call]

    @cached_property
    def _ops_around(self) -> Int64s:
        """Rows of `ops` around the launch of each of `work`: one row a level, the innermost first, NONE beyond."""
        parents, levels = np.append(self.trace.ops.parent, NONE), [self.op[self.work]]
        while len(levels) < OP_LEVELS:
            levels.append(parents[levels[-1]])
        return np.array(levels)

    def ops_named(self, *names: str) -> Int64s:
        """Rows of `ops` with one of these names."""
        return np.flatnonzero(self.trace.ops.name.equal(*names))

    @_once
    def under_op(self, *names: str) -> Bools:
        """GPU operations launched by an op with one of these names, or by an op within it."""
        return self.under_op_where(set(names).__contains__)

    def under_op_where(self, test: Callable[[str], bool]) -> Bools:
        """The same for ops whose name passes the test."""
        result = np.zeros(len(self.graph), bool)
        result[self.work] = np.append(self.trace.ops.name.where(test), False)[self._ops_around].any(axis=0)
        return result

    def launches_within(self, works: Int64s) -> Int64s:
        """How many of these GPU operations each row of `ops` launches, itself or by the ops that it encloses."""
        ops, launching = self.trace.ops, self.op[works]
        return totals(ops.parent, ops.depth, np.bincount(launching[launching != NONE], minlength=len(ops)))

    @cached_property
    def engine_ops(self) -> Bools:
        """Which ops are autograd's engine at work (one entry per row of `ops`, and False for none)."""
        return np.append(self.trace.ops.name.like(AUTOGRAD), False)

    @cached_property
    def of_autograd(self) -> Bools:
        """GPU operations that autograd's engine launched, by its ops or on a thread of its own."""
        launched = self.call_of_work != NONE
        on_thread = launched & np.isin(self.graph.lane[self.call_of_work], engine_threads(self.trace))
        return (self.engine_ops[self.root_op] | on_thread) & self.is_work

    @cached_property
    def dataflow(self) -> KnownFlow | None:
        """Which GPU operations share tensors, where `warpline run` recorded it; None elsewhere."""
        return KnownFlow.of(self.trace, self.op)

    # Time of the host.

    @cached_property
    def segments(self) -> Int64s:
        """Nodes that are time of a thread between its calls."""
        return self.graph.nodes(NodeKind.SEGMENT)

    def covered(self, starts: Int64s, ends: Int64s, threads: Int64s | None = None) -> Floats:
        """Share of each CPU segment that lies within any of these intervals (of its own thread, where given)."""
        nodes, result = self.segments, np.zeros(len(self.graph))
        begin, end = self.graph.measured_start[nodes], self.graph.measured_end[nodes]
        if threads is None:
            spans = union(starts, ends)
            covered = covered_before(spans, end) - covered_before(spans, begin)
        else:
            covered = LaneSpans.union(threads, starts, ends).covered_ns(self.graph.lane[nodes], begin, end)
        result[nodes] = covered / np.maximum(end - begin, 1)
        return result

    def covered_by(self, rows: Ops | Ranges | Python) -> Floats:
        """Share of each CPU segment that these rows of its own thread cover."""
        return self.covered(rows.start_ns, rows.end_ns, rows.thread)

    @cached_property
    def op_share(self) -> Floats:
        """Share of each segment that an op covers (outermost ops of its thread)."""
        return self.covered_by(self.trace.ops[self.trace.ops.depth == 0])

    def root_op_at(self, segments: Int64s) -> Int64s:
        """The outermost op of its thread in whose time each segment's middle lies; NONE outside."""
        outer = np.flatnonzero(self.trace.ops.depth == 0)
        ops = self.trace.ops[outer]
        middle = (self.graph.measured_start[segments] + self.graph.measured_end[segments]) // 2
        found = np.full(len(segments), NONE, np.int64)
        of_thread = dict(grouped(np.arange(len(outer)), ops.thread))
        for lane, places in grouped(np.arange(len(segments)), self.graph.lane[segments]):
            if lane in of_thread:
                own = of_thread[lane]
                spot = containing(ops.start_ns[own], ops.end_ns[own], middle[places])
                found[places] = np.append(outer[own], NONE)[spot]
        return found

    @_once
    def within_ranges(self, pattern: str) -> Bools:
        """Nodes of threads that began, and work that was launched, within a range whose name matches."""
        ranges, moment = self.trace.ranges, self.launch_moment
        inside = np.zeros(len(self.graph), bool)
        for row in np.flatnonzero(ranges.name.like(pattern) & (ranges.thread != NONE)).tolist():
            # Nothing, if its end is not known.
            inside |= (moment >= ranges.start_ns[row]) & (moment < ranges.end_ns[row])
        return inside

    @cached_property
    def host_time(self) -> HostTime:
        """What each thread was doing."""
        return HostTime(self.trace)

    @cached_property
    def input_share(self) -> Floats:
        """Share of each segment within steps in which the program loads data."""
        found = self.host_time.loading()
        return np.where(self.in_steps, self.covered(found.starts, found.ends, found.lanes), 0.0)

    # Floors.

    @cached_property
    def op_calls(self) -> OpCalls:
        """The ops as they were called."""
        return OpCalls(self.trace)

    @cached_property
    def floors(self) -> Floors:
        """Minimum times of the GPU operations."""
        return Floors(self.trace, self.op_calls)

    @_once
    def floor_ns(self, dtype: str | None = None) -> Floats:
        """Minimum time of each GPU operation, at its own or another precision; 0 if unknown, and for CPU nodes."""
        return np.append(self.floors.least_ns(dtype), 0.0)[self._gpu_row]
