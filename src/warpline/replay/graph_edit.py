"""A graph that one or several fixes change.

Nodes are never deleted; removed operations and calls take no time and delay nothing.
"""

from __future__ import annotations

from enum import Enum, auto

import numpy as np

from warpline.analyses.idle.gaps import LATE_START_NS
from warpline.replay.graph.model import EdgeKind, Graph, NodeKind
from warpline.replay.labelled_graph import LabelledGraph
from warpline.trace.arrays import NONE, Bools, Floats, Int64s, containing, grouped

NOTHING: Int64s = np.empty(0, np.int64)
ORDER = (EdgeKind.STREAM, EdgeKind.EVENT, EdgeKind.INFERRED)
"""Edges by which an operation waits for another one on the device."""


class Effect(Enum):
    """What is known of the step with a fix, beyond its replay."""

    AS_REPLAYED = auto()
    CERTAIN = auto()
    """All that the fix removes goes in any case: the step is no longer than the replay's worst one."""
    OUTSIDE_STEPS = auto()
    """All that the fix removes lies outside the steps in view: their time stays as it is."""
    DOUBTFUL = auto()
    """Nothing in the trace tells that the fix helps: the step may stay as it is."""


class GraphEdit:
    """A graph being changed."""

    def __init__(self, labelled: LabelledGraph, graph: Graph) -> None:
        self.labelled = labelled
        self.graph = graph.copy()
        self.gone: Bools = np.zeros(len(graph), bool)
        """Removed GPU operations."""
        self.moved: Bools = np.zeros(len(graph), bool)
        """GPU operations that were moved to another stream."""
        self.freed: Bools = np.zeros(len(graph), bool)
        """Calls that no longer wait for the device."""
        self.unconverted: Floats = np.full(len(graph), np.nan)
        """Durations of the matmuls that run in another precision, before that."""
        self._released: list[tuple[Int64s, Int64s]] = []
        """Work for which calls no longer wait, and the returns of those calls."""
        work = labelled.loader_work
        self.step_floor_ns = work.step_ns if work else 0.0
        """Lower bound of the step from outside the graph: the workers of a DataLoader need so long for a batch."""
        self.counted: Bools | None = None
        """The steps that stand for all, where others do what a fixed program does not repeat; None for all of them."""
        self.effect = Effect.AS_REPLAYED

    def keep_late_starts(self) -> None:
        """What held a stream, for no recorded reason, holds it as long for an earlier launch."""
        graph = self.graph
        launches = (graph.edge_kind == EdgeKind.LAUNCH) & (graph.lag > LATE_START_NS)
        delay = np.zeros(len(graph))
        np.maximum.at(delay, graph.edge_to[launches], graph.lag[launches])
        streams = graph.edge_kind == EdgeKind.STREAM
        graph.lag[streams] = np.maximum(graph.lag, delay[graph.edge_to])[streams]

    def shorten(self, nodes: Int64s, duration: Floats | float, floor: Floats | float = 0.0) -> None:
        """Set durations, never above the current ones and never below the floor."""
        now = self.graph.duration[nodes]
        self.graph.duration[nodes] = np.minimum(now, np.maximum(duration, floor))

    def remove_work(self, nodes: Int64s) -> None:
        """Remove GPU operations, with calls that launched nothing else and the CPU time before."""
        self.remove_work_only(nodes)
        self._remove_dispatch(nodes)

    def remove_work_only(self, nodes: Int64s) -> None:
        """Remove GPU operations, and leave what launched them."""
        self.gone[nodes] = True
        self.graph.duration[nodes] = 0.0
        into = self.graph.marked(nodes)[self.graph.edge_to]
        self.graph.lag[into & (self.graph.edge_kind == EdgeKind.STREAM)] = 0.0
        self.graph.edge_kind[into & (self.graph.edge_kind == EdgeKind.LAUNCH)] = EdgeKind.GONE

    def _remove_dispatch(self, nodes: Int64s) -> None:
        """Ops all of whose work is gone take no CPU time; without ops, calls likewise."""
        roots, calls = self.labelled.root_op, self.labelled.call_of_work
        others = self.labelled.work[~self.gone[self.labelled.work]]
        self.remove_ops(_without(roots[nodes], roots[others], len(self.labelled.trace.ops)))
        self.remove_calls(_without(calls[nodes[roots[nodes] == NONE]], calls[others], len(self.graph)))

    def remove_ops(self, ops: Int64s) -> None:
        """Remove the CPU time of these ops, with their calls and waits."""
        if not len(ops):
            return
        labelled = self.labelled
        self.graph.duration *= 1 - labelled.covered_by(labelled.trace.ops[ops])
        inside = np.zeros(len(labelled.trace.ops) + 1, bool)
        inside[ops] = True
        calls = np.flatnonzero((self.graph.kind == NodeKind.CALL) & inside[labelled.root_op_of_call])
        self.graph.duration[calls] = 0.0
        self.stop_waiting(calls)

    def remove_cpu(self, thread: int, start_ns: int, end_ns: int) -> None:
        """Remove everything that a thread did between two moments."""
        graph = self.graph
        inside = (graph.measured_start >= start_ns) & (graph.measured_start < end_ns) & (graph.lane == thread)
        nodes = np.flatnonzero(inside & ~self.labelled.is_work)
        graph.duration[nodes] = 0.0
        self.stop_waiting(nodes[graph.kind[nodes] == NodeKind.CALL])

    def remove_spans(self, starts: Int64s, ends: Int64s, threads: Int64s) -> None:
        """Remove the host time between these moments, waits included; the intervals of a thread do not overlap.

        From a host segment that they cover in part, they remove their share of its time without profiler overhead.
        """
        self._remove_spans(starts, ends, threads, self.graph.duration)

    def remove_unprofiled_spans(self, starts: Int64s, ends: Int64s, threads: Int64s) -> None:
        """The same for spans in which the profiler records nothing, so that all of their recorded time goes."""
        self._remove_spans(starts, ends, threads, self.graph.measured_end - self.graph.measured_start)

    def _remove_spans(self, starts: Int64s, ends: Int64s, threads: Int64s, length: Floats | Int64s) -> None:
        graph = self.graph
        graph.duration[:] = np.maximum(graph.duration - self.labelled.covered(starts, ends, threads) * length, 0.0)
        calls = np.flatnonzero(graph.kind == NodeKind.CALL)
        moment = graph.measured_start[calls]
        inside = np.zeros(len(calls), bool)
        for thread, rows in grouped(np.arange(len(threads)), threads):
            ordered = rows[np.argsort(starts[rows])]
            inside |= (graph.lane[calls] == thread) & (containing(starts[ordered], ends[ordered], moment) != NONE)
        graph.duration[calls[inside]] = 0.0
        self.stop_waiting(calls[inside])

    def settle(self) -> Graph:
        """The graph as it is to be replayed. What waited for room beside other work waits a share of its new length;
        kernels that came after a wait of the CPU still come after what it waited for."""
        graph = self._in_order()
        edges = np.flatnonzero(graph.edge_kind == EdgeKind.CONTENTION)
        source = graph.edge_from[edges]
        before = np.maximum(self.labelled.graph.duration[source], 1.0)
        graph.lag[edges] *= np.minimum(1.0, graph.duration[source] / before)
        return graph

    def remove_calls(self, calls: Int64s) -> None:
        """Takes calls out, with the dispatch that led to them and whatever they waited for."""
        if not len(calls):
            return
        segments = self.labelled.segment_of_call[calls]
        segments = segments[segments != NONE]
        self.graph.duration[calls] = 0.0
        self.graph.duration[segments] = np.maximum(
            self.graph.duration[segments] - self.labelled.host.longest_dispatch.expected, 0.0
        )
        self.stop_waiting(calls)

    def stop_waiting(self, calls: Int64s) -> None:
        """Let the calls return without waiting."""
        graph = self.graph
        waits = np.flatnonzero(graph.edge_kind == EdgeKind.SYNC)
        released = waits[graph.marked_rows(graph.row[calls])[graph.row[graph.edge_to[waits]]]]
        self.freed[graph.edge_to[released]] = True
        self.release(released)

    def release(self, waits: Int64s) -> None:
        """Remove these edges, by which the CPU waits for work."""
        graph = self.graph
        self._released.append((graph.edge_from[waits], graph.edge_to[waits]))
        graph.edge_kind[waits] = EdgeKind.GONE

    def _in_order(self) -> Graph:
        """The graph in which kernels of other streams of a device still follow those that a wait made them follow: a
        program without the wait orders them by an event. Nothing recorded shows that they could run side by side."""
        lanes = self.labelled.once(_kernel_lanes)
        if not self._released or len(lanes) < 2:
            return self.graph
        graph, device = self.graph, self.labelled.work_number("device")
        before, back = (np.concatenate(nodes) for nodes in zip(*self._released, strict=True))
        is_kernel = self.labelled.once(_ordered_kernels)[before]
        before, back = before[is_kernel], back[is_kernel]
        sources, targets = [NOTHING], [NOTHING]
        for lane, (calls, work) in lanes.items():
            # The stream's first kernel that the waiting thread launches after the wait; later ones follow it.
            following = np.searchsorted(calls, back, side="right")
            first = np.append(work, NONE)[following]
            chosen = (first != NONE) & (graph.lane[before] != lane)
            chosen &= (device[before] == device[first]) & (
                graph.lane[back] == graph.lane[np.append(calls, 0)[following]]
            )
            sources.append(before[chosen])
            targets.append(first[chosen])
        found = np.concatenate(sources), np.concatenate(targets)
        return graph.with_edges(*found, np.zeros(len(found[0])), EdgeKind.EVENT)

    def detach(self, nodes: Int64s) -> None:
        """Move operations to another stream: later operations on their old stream no longer wait for them. They still
        wait for what came before them, and for each other."""
        if not len(nodes):
            return
        graph = self.graph
        self.moved[nodes] = True
        moved = graph.marked(nodes)
        ordered = np.isin(graph.edge_kind, ORDER)
        from_it, to_it = moved[graph.edge_from], moved[graph.edge_to]
        in_stream = graph.edge_kind == EdgeKind.STREAM
        into = to_it & in_stream
        before = dict(zip(graph.edge_to[into].tolist(), graph.edge_from[into].tolist(), strict=True))
        sources, targets, lags = [], [], []
        for edge in np.flatnonzero(in_stream & from_it & ~to_it).tolist():
            source = int(graph.edge_from[edge])
            while moved[source] and source in before:
                source = before[source]
            if not moved[source]:
                sources.append(source)
                targets.append(int(graph.edge_to[edge]))
                lags.append(float(graph.lag[edge]))
        graph.edge_kind[ordered & from_it & ~to_it] = EdgeKind.GONE
        lanes = [np.sort(own) for _, own in grouped(nodes, graph.lane[nodes])]
        earlier = np.concatenate([NOTHING, *(own[:-1] for own in lanes)])
        later = np.concatenate([NOTHING, *(own[1:] for own in lanes)])
        graph = graph.with_edges(earlier, later, np.zeros(len(earlier)), EdgeKind.STREAM)
        self.graph = graph.with_edges(
            np.array(sources, np.int64), np.array(targets, np.int64), np.array(lags, np.float64), EdgeKind.STREAM
        )

    def stop_following(self, nodes: Int64s) -> None:
        """Let operations wait for none that came before them, but for each other."""
        graph, chosen = self.graph, self.graph.marked(nodes)
        before = chosen[graph.edge_to] & ~chosen[graph.edge_from]
        graph.edge_kind[before & np.isin(graph.edge_kind, ORDER)] = EdgeKind.GONE


def _ordered_kernels(labelled: LabelledGraph) -> Bools:
    """Kernels that compute: collectives and copies run beside them."""
    return labelled.is_kernel & ~labelled.kernels("comm")


def _kernel_lanes(labelled: LabelledGraph) -> dict[int, tuple[Int64s, Int64s]]:
    """The launches of each stream that computes, and their kernels, in order."""
    work = np.flatnonzero(labelled.once(_ordered_kernels) & (labelled.call_of_work != NONE))
    work = work[np.lexsort((work, labelled.call_of_work[work]))]
    return {lane: (labelled.call_of_work[own], own) for lane, own in grouped(work, labelled.graph.lane[work])}


def _without(these: Int64s, others: Int64s, count: int) -> Int64s:
    """Those of the numbers below `count` that are among these and not among the others."""
    left = np.zeros(count + 1, bool)
    left[these] = True
    left[others] = left[NONE] = False
    return np.flatnonzero(left)
