"""Whose nanosecond is it? Every node of the graph belongs to one resource, or divides its time among several.

A resource is what a step can wait for: the CPU's launches, waits for the GPU, copies, data, memory, other ranks,
kernels, a cold start. `FreeResources.free` makes one of them free, and the replay shows the step without it
(blocked-time analysis: Ousterhout et al., Making Sense of Performance in Data Analytics Frameworks, NSDI 2015).
"""

from __future__ import annotations

from collections import defaultdict
from enum import IntEnum
from functools import cached_property

import numpy as np

from warpline import api_names
from warpline.analyses.idle.gaps import LATE_START_NS
from warpline.analyses.idle.host_activity import ALLOCATE
from warpline.intervals import LaneSpans
from warpline.replay.graph.model import EdgeKind, Graph, NodeKind
from warpline.replay.graph_edit import GraphEdit
from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.patterns.casts import casts
from warpline.replay.simulate import Schedule, simulate
from warpline.replay.steps import StepMarks
from warpline.trace.arrays import NONE, Bools, Floats, Int64s, greatest_of, least_of


class Resource(IntEnum):
    """What a step can wait for; the names are those of the causes."""

    DISPATCH = 0
    SYNC = 1
    TRANSFER = 2
    INPUT = 3
    MEMORY = 4
    COMM = 5
    KERNEL = 6
    COLD_START = 7
    UNKNOWN = 8


ALL_BUT_KERNELS = tuple(resource for resource in Resource if resource is not Resource.KERNEL)
_COUNT = len(Resource)


class Resources:
    """The resource of every node and of every wait of a labelled graph."""

    def __init__(self, labelled: LabelledGraph) -> None:
        self._labelled = labelled

    @cached_property
    def of_work(self) -> Int64s:
        """The resource of each GPU operation; NONE for CPU nodes."""
        labelled, found = self._labelled, np.full(len(self._labelled.graph), NONE)
        found[labelled.is_work] = Resource.KERNEL
        copies = labelled.is_copy
        moving = labelled.kernels_where(lambda kernel: kernel.kernel_class == "memory" and kernel.op != "cast")
        moves = (moving | copies | labelled.kind.equal("memset")) & ~labelled.once(casts)
        found[self._asked_for(moves)] = Resource.MEMORY
        found[copies & labelled.copy_kind.equal("HtoD", "DtoH")] = Resource.TRANSFER
        found[labelled.kernels("comm")] = Resource.COMM
        found[self._results] = Resource.SYNC
        return found

    def _asked_for(self, moves: Bools) -> Bools:
        """Moves on the device that the program asks for: their outermost op does nothing else, and is not autograd's.
        What an op moves for its own kernel is that kernel's."""
        labelled = self._labelled
        computing = np.zeros(len(labelled.trace.ops) + 1, bool)
        computing[labelled.root_op[labelled.work[~moves[labelled.work]]]] = True
        computing[NONE] = False
        return moves & ~computing[labelled.root_op] & ~labelled.of_autograd

    @cached_property
    def _results(self) -> Bools:
        """Copies to the host by which the CPU reads a result: most of its wait is over when they start, or they are too
        small to count. A copy's own call and the synchronisation behind it are one wait; what follows the start is the
        copy, and the staging of pageable memory."""
        labelled, graph = self._labelled, self._labelled.graph
        found = np.zeros(len(graph), bool)
        waits = np.flatnonzero(graph.edge_kind == EdgeKind.SYNC)
        waits = waits[labelled.copy_kind[graph.edge_from[waits]].equal("DtoH")]
        work, rows = graph.edge_from[waits], graph.row[graph.edge_to[waits]]
        first = least_of(len(graph), work, labelled.trace.api.start_ns[rows])
        last = greatest_of(len(graph), work, labelled.trace.api.end_ns[rows])
        start, copying = graph.measured_start[work], (graph.measured_end - graph.measured_start)[work]
        is_small = copying < labelled.device.launch_to_start.expected
        found[work] = is_small | (start - first[work] > last[work] - start)
        return found

    @cached_property
    def of_wait(self) -> Int64s:
        """The resource of each edge by which the CPU waits for the GPU; NONE for others and for a full launch queue."""
        graph = self._labelled.graph
        found = np.full(len(graph.edge_kind), NONE)
        waits = np.flatnonzero(graph.edge_kind == EdgeKind.SYNC)
        is_copy = self.of_work[graph.edge_from[waits]] == Resource.TRANSFER
        found[waits] = np.where(is_copy, Resource.TRANSFER, Resource.SYNC)
        back = graph.edge_to[waits]
        allocating = self._calls(ALLOCATE)[back]
        found[waits[allocating]] = self.of_call[back[allocating]]
        found[waits[self._calls(api_names.LAUNCH)[back]]] = NONE
        return found

    def _calls(self, pattern: str) -> Bools:
        return self._labelled.call_name.like(pattern)

    @cached_property
    def of_call(self) -> Int64s:
        """The resource of each API call: of what it copies, else of what it does. A copy may be recorded without its
        operation on the device."""
        labelled, graph = self._labelled, self._labelled.graph
        found = np.full(len(graph), Resource.DISPATCH)
        found[self._calls(api_names.COPY) & ~self._calls(api_names.ASYNC_COPY)] = Resource.TRANSFER
        work = labelled.work
        copies = work[labelled.is_copy[work] & (labelled.call_of_work[work] != NONE)]
        found[labelled.call_of_work[copies]] = self.of_work[copies]
        found[self._calls(api_names.HOST_WAIT)] = Resource.SYNC
        found[self._calls(ALLOCATE)] = Resource.MEMORY
        calls = np.flatnonzero(np.isin(graph.kind, [NodeKind.CALL, NodeKind.RELEASE]))
        start = labelled.trace.api.start_ns[graph.row[calls]]
        found[calls[labelled.host_time.is_labelled("cold_start", graph.lane[calls], start)]] = Resource.COLD_START
        return found

    @cached_property
    def _of_op(self) -> Int64s:
        """The resource of each outermost op: to ask for a copy, a wait or a collective is part of it. Kernels are asked
        for by dispatch, and so is what several resources share."""
        labelled, count = self._labelled, len(self._labelled.trace.ops) + 1
        seen = np.zeros((_COUNT, count), bool)
        seen[self.of_work[labelled.work], labelled.root_op[labelled.work]] = True
        waiting = np.zeros(count, bool)
        waiting[labelled.root_op_of_call[np.flatnonzero(labelled.calls_like(api_names.HOST_WAIT))]] = True
        found = np.where(seen.sum(axis=0) == 1, seen.argmax(axis=0), Resource.DISPATCH)
        found[waiting & ~seen.any(axis=0)] = Resource.SYNC
        found[found == Resource.KERNEL] = Resource.DISPATCH
        found[NONE] = Resource.DISPATCH
        return found

    @cached_property
    def shares(self) -> Floats:
        """For each resource and CPU node, the share of its time that belongs to it: together all of it."""
        return self.shares_without(np.zeros(len(self._labelled.graph)))

    def shares_without(self, cold_share: Floats) -> Floats:
        """The shares, where a second run would not have so much of each CPU node: that is a cold start's."""
        graph = self._labelled.graph
        segments = graph.kind == NodeKind.SEGMENT
        shares, left = np.zeros((_COUNT, len(graph))), segments.astype(float)
        for resource, wanted in [(Resource.COLD_START, cold_share), *self._claims]:
            part = np.minimum(wanted, left)
            shares[resource] += part
            left -= part
        shares[Resource.DISPATCH] += left
        calls = np.flatnonzero((graph.kind == NodeKind.CALL) | (graph.kind == NodeKind.RELEASE))
        shares[self.of_call[calls], calls] = 1.0 - cold_share[calls]
        shares[Resource.COLD_START, calls] += cold_share[calls]
        return shares

    @cached_property
    def _claims(self) -> list[tuple[Resource, Floats]]:
        """What share of each segment a resource claims, in the order in which they take it; the rest is dispatch."""
        labelled, graph = self._labelled, self._labelled.graph
        segments = graph.kind == NodeKind.SEGMENT
        claims: list[tuple[Resource, Floats]] = []
        explained = np.where(np.isin(graph.lane, labelled.host_time.launching), 0.0, 1.0)
        for label, part in _by_label(labelled).items():
            explained += part
            if label in ("cold_start", "input"):
                claims.append((Resource.COLD_START if label == "cold_start" else Resource.INPUT, part))
        claims.append((Resource.UNKNOWN, np.clip(1 - explained, 0, 1) * segments))
        outermost = labelled.trace.ops.depth == 0
        for resource in (Resource.TRANSFER, Resource.SYNC, Resource.MEMORY, Resource.COMM):
            ops = np.flatnonzero((self._of_op[:-1] == resource) & outermost)
            if len(ops):
                claims.append((resource, labelled.covered_by(labelled.trace.ops[ops])))
        return claims


class FreeResources:
    """The graph with some resources free, and the account of the critical path.

    `cold_share` is the share of each CPU node that a second run would not have; `reachable_ns` is what audited fixes
    make of each kernel, which is all that can be said of kernels: a roofline floor cannot tell slow from healthy. A
    kernel that a fix removes leaves no gap before the next.
    """

    def __init__(self, labelled: LabelledGraph, cold_share: Floats, reachable_ns: Floats) -> None:
        self._labelled, self._reachable_ns = labelled, reachable_ns
        self._resources = labelled.once(Resources)
        self._shares = self._resources.shares_without(cold_share)

    def free(self, bare: Graph, resources: tuple[Resource, ...], host_speedup: float = 1.0) -> GraphEdit:
        """A bare graph with these resources free: they take no time, and nothing waits for them. What is launched is
        launched as fast as by a host that is so many times faster."""
        labelled, edit = self._labelled, GraphEdit(self._labelled, bare)
        graph, host = edit.graph, ~labelled.is_work
        faster = 1 - self._shares[Resource.DISPATCH] * (1 - 1 / host_speedup)
        remaining = np.clip(1 - self._shares[list(resources)].sum(axis=0), 0, 1) if resources else 1.0
        graph.duration[host] *= (faster * remaining)[host]
        for resource in resources:
            self._free_work(edit, resource)
        if Resource.INPUT in resources:
            edit.step_floor_ns = 0.0
        return edit

    def _free_work(self, edit: GraphEdit, resource: Resource) -> None:
        graph, work = edit.graph, np.flatnonzero(self._resources.of_work == resource)
        if resource is Resource.KERNEL:
            graph.duration[work] = np.minimum(graph.duration, self._reachable_ns)[work]
            removed = work[self._reachable_ns[work] == 0]
            edit.gone[removed] = True
            graph.lag[graph.marked(removed)[graph.edge_to] & (graph.edge_kind == EdgeKind.STREAM)] = 0.0
            return
        if resource is Resource.DISPATCH:
            # Launches that cost nothing leave no more between two queued kernels than a CUDA graph does. The latency of
            # a launch stays: what is launched after a wait pays it, so that a wait keeps its price.
            queued = (graph.edge_kind == EdgeKind.STREAM) & (self._resources.of_work[graph.edge_to] == Resource.KERNEL)
            queued &= graph.lag <= LATE_START_NS
            graph.lag[queued] = np.minimum(graph.lag, self._labelled.device.graph_gap.expected)[queued]
        if resource is Resource.UNKNOWN:
            late = np.isin(graph.edge_kind, [EdgeKind.LAUNCH, EdgeKind.STREAM]) & (graph.lag > LATE_START_NS)
            graph.lag[late] = self._labelled.device.launch_to_start.expected
        edit.gone[work] = True
        graph.duration[work] = 0.0
        into = graph.marked(work)[graph.edge_to] & np.isin(graph.edge_kind, [EdgeKind.STREAM, EdgeKind.LAUNCH])
        # Without a recorded launch, nobody knows what a late start waited for.
        without_launch = self._labelled.call_of_work[graph.edge_to] == NONE
        graph.lag[into & ~(without_launch & (graph.lag > LATE_START_NS))] = 0.0
        edit.release(np.flatnonzero(self._resources.of_wait == resource))

    # The account.

    def on_critical_path(self, graph: Graph, marks: StepMarks) -> dict[Resource, float]:
        """Time of each resource on the critical path of the steps, in ns; sums to the steps of the replay."""
        schedule = simulate(graph)
        begin, end, last = _span(marks, graph, schedule)
        start, finish = schedule.finish - graph.duration, schedule.finish
        nodes, edges = _path_to(last, begin, graph, schedule)
        seen = np.maximum(np.minimum(finish[nodes], end) - np.maximum(start[nodes], begin), 0.0)
        is_work = graph.kind[nodes] == NodeKind.WORK
        host = self._shares[:, nodes[~is_work]] @ seen[~is_work]
        work = np.bincount(self._resources.of_work[nodes[is_work]], seen[is_work], _COUNT)
        waited = start[graph.edge_to[edges]] - np.maximum(finish[graph.edge_from[edges]], begin)
        total = host + work + np.bincount(self._of_lags(graph, edges), waited, _COUNT)
        return {resource: float(total[resource]) for resource in Resource}

    def _of_lags(self, graph: Graph, edges: Int64s) -> Int64s:
        """The resource of the time between the two nodes of each edge."""
        kind, target = graph.edge_kind[edges], graph.edge_to[edges]
        wait, work = self._resources.of_wait[edges], self._resources.of_work[target]
        is_queued = np.isin(kind, [EdgeKind.LAUNCH, EdgeKind.STREAM])
        return np.select(
            [
                (kind == EdgeKind.SYNC) & (wait != NONE),
                is_queued & (graph.lag[edges] > LATE_START_NS),
                is_queued & (work == Resource.KERNEL),
                is_queued | (graph.kind[target] == NodeKind.WORK),
            ],
            [wait, Resource.UNKNOWN, Resource.DISPATCH, work],
            Resource.DISPATCH,
        )


def _by_label(labelled: LabelledGraph) -> dict[str, Floats]:
    """For each label of the launching threads' time, the share of each segment that has it."""
    graph, host = labelled.graph, labelled.host_time
    own = labelled.segments[np.isin(graph.lane[labelled.segments], host.launching)]
    asked = LaneSpans.union(graph.lane[own], graph.measured_start[own], graph.measured_end[own])
    found: dict[str, Floats] = defaultdict(lambda: np.zeros(len(graph)))
    for explained in host.explained(asked):
        for label, spans in explained.items():
            found[label] += labelled.covered(spans.starts, spans.ends, spans.lanes)
    return found


def _path_to(last: int, begin: float, graph: Graph, schedule: Schedule) -> tuple[Int64s, Int64s]:
    """Nodes and edges of the critical path to a node, from there back to a moment."""
    reached = schedule.finish[graph.edge_from] + graph.lag
    reached[graph.edge_kind == EdgeKind.GONE] = -np.inf
    first_edge = np.searchsorted(graph.edge_to, np.arange(len(graph) + 1)).tolist()
    nodes, edges = [last], []
    while schedule.finish[nodes[-1]] - graph.duration[nodes[-1]] > begin:
        into = reached[first_edge[nodes[-1]] : first_edge[nodes[-1] + 1]]
        if not len(into) or into.max() == -np.inf:
            break
        edges.append(first_edge[nodes[-1]] + int(into.argmax()))
        before = int(graph.edge_from[edges[-1]])
        if schedule.finish[before] <= begin:
            break
        nodes.append(before)
    return np.array(nodes, np.int64), np.array(edges, np.int64)


def _span(marks: StepMarks, graph: Graph, schedule: Schedule) -> tuple[float, float, int]:
    """When the steps start and end in a replay, and the node in which they end."""
    nodes = marks.node[[0, -1]]
    share = marks.offset_ns[[0, -1]] / np.maximum((graph.measured_end - graph.measured_start)[nodes], 1)
    moments = schedule.finish[nodes] - share * graph.duration[nodes]
    ends = nodes.tolist()
    for place, boundary in enumerate((0, marks.count)):
        work = np.flatnonzero(marks.boundary_of_work == boundary)
        if len(work) and schedule.finish[work].max() > moments[place]:
            ends[place] = int(work[schedule.finish[work].argmax()])
            moments[place] = schedule.finish[ends[place]]
    return float(moments[0]), float(moments[1]), int(ends[1])
