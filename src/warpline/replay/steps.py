"""The steps of a trace in a replay: when each starts and completes.

A step that a CPU range marks is complete when the CPU has left it and the operations launched in it are done; its
duration is the time since the completion of the previous step. That is what timing the loop shows, whichever of
CPU and GPU is the slower. A step that was found by repetition on the device runs from its first kernel to the next
step's first kernel.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from msgspec import Struct

from warpline.errors import CannotAnswer
from warpline.replay.graph.model import Graph, NodeKind
from warpline.replay.simulate import Schedule
from warpline.trace.arrays import NONE, Floats, Int64s
from warpline.trace.launches import launch_moments
from warpline.trace.schema import Steps
from warpline.trace.steps.choice import on_device
from warpline.trace.trace import Trace


class StepMarks(Struct, frozen=True, dict=True):
    """Boundaries of the steps in the graph."""

    node: Int64s
    """For each boundary (one more than steps), the node that it lies in."""
    offset_ns: Floats
    """How long before the node's end it lies, as measured."""
    boundary_of_work: Int64s
    """For each node, the boundary that cannot come before its end (NONE for none)."""
    count: int
    outside_ns: float = 0.0
    """Time of the last step in which no node runs: a loop's end after its last call, or pages that the driver moves."""

    def lengths(self, graph: Graph, schedule: Schedule) -> Floats:
        """Duration of each step in a replay."""
        share = self.offset_ns / np.maximum(graph.measured_end[self.node] - graph.measured_start[self.node], 1)
        moments = schedule.finish[self.node] - share * graph.duration[self.node]
        boundaries, work, first = self._work
        complete = moments.copy()
        if len(work):
            last = np.maximum.reduceat(schedule.finish[work], first)
            complete[boundaries] = np.maximum(complete[boundaries], last)
        lengths: Floats = np.diff(np.maximum.accumulate(complete))
        lengths[-1:] += self.outside_ns
        return lengths

    @cached_property
    def _work(self) -> tuple[Int64s, Int64s, Int64s]:
        """The boundaries that have work, all work by boundary, and where the work of each begins."""
        work = np.flatnonzero(self.boundary_of_work != NONE)
        work = work[np.argsort(self.boundary_of_work[work], kind="stable")]
        boundaries, first = np.unique(self.boundary_of_work[work], return_index=True)
        return boundaries, work, first


def as_measured(graph: Graph) -> Schedule:
    """The schedule that the trace recorded."""
    return Schedule(
        (graph.measured_start - graph.origin_ns).astype(np.float64),
        (graph.measured_end - graph.origin_ns).astype(np.float64),
    )


def find_marks(trace: Trace, graph: Graph) -> StepMarks:
    """The selected steps; without steps, the whole trace is one."""
    steps = trace.steps_in_view
    if not len(steps):
        return _whole(trace, graph)
    if on_device(steps):
        return _on_device(graph, steps)
    return _on_thread(trace, graph, steps)


def _whole(trace: Trace, graph: Graph) -> StepMarks:
    """From the start of the first work to the end of the last, as the window of a trace."""
    work = graph.nodes(NodeKind.WORK)
    first, last = (int(work[moments[work].argmin()]) for moments in (graph.measured_start, -graph.measured_end))
    step = np.full(len(graph), NONE, np.int64)
    step[work] = 1
    length = float(graph.measured_end[first] - graph.measured_start[first])
    outside_ns = trace.window.length_ns - float(graph.measured_end[last] - graph.measured_start[first])
    return StepMarks(np.array([first, last]), np.array([length, 0.0]), step, 1, max(outside_ns, 0.0))


def _on_device(graph: Graph, steps: Steps) -> StepMarks:
    """Boundaries are starts of kernels; the last may be the end of one. Work that was done before a boundary still is
    when a fix moves either of them."""
    work = graph.nodes(NodeKind.WORK)
    order = work[np.argsort(graph.measured_start[work], kind="stable")]
    times = graph.measured_start[order]
    boundaries = np.append(steps.start_ns, steps.end_ns[-1])
    spot = np.minimum(np.searchsorted(times, boundaries), len(times) - 1)
    node = order[spot]
    offset = (graph.measured_end - graph.measured_start)[node].astype(np.float64)
    if times[spot[-1]] != boundaries[-1]:
        by_end = work[np.argsort(graph.measured_end[work], kind="stable")]
        last = np.searchsorted(graph.measured_end[by_end], boundaries[-1])
        node[-1], offset[-1] = by_end[min(int(last), len(by_end) - 1)], 0.0
    before = np.full(len(graph), NONE, np.int64)
    before[work] = np.searchsorted(boundaries, graph.measured_end[work])
    before[before > len(steps)] = NONE
    return StepMarks(node, offset, before, len(steps))


def _on_thread(trace: Trace, graph: Graph, steps: Steps) -> StepMarks:
    """Boundaries lie within segments (or calls) of the thread on which the steps lie."""
    starts, end = steps.start_ns, int(steps.end_ns[-1])
    host = graph.of_kinds(NodeKind.SEGMENT, NodeKind.CALL)
    host_nodes = np.flatnonzero((graph.lane == steps.thread[0]) & host)
    calls = graph.lane[graph.of_kinds(NodeKind.CALL)]
    if not len(host_nodes) and len(calls):
        # Another thread launches the work of these steps.
        host_nodes = np.flatnonzero((graph.lane == np.bincount(calls).argmax()) & host)
    if not len(host_nodes):
        raise CannotAnswer(
            "no-step-thread",
            "the steps are on a thread that made no CUDA call",
            "select a range of the launching thread with --step-range NAME",
        )
    boundaries = np.append(starts, end)
    spot = np.clip(
        np.searchsorted(graph.measured_start[host_nodes], boundaries, side="right") - 1, 0, len(host_nodes) - 1
    )
    node = host_nodes[spot]
    offset = np.clip((graph.measured_end[node] - boundaries).astype(np.float64), 0, None)
    work = _boundary_of_work(trace, graph, starts, end)
    done = max(int(graph.measured_end[node[-1]]), int(graph.measured_end[work == len(steps)].max(initial=0)))
    return StepMarks(node, offset, work, len(steps), max(float(end - done), 0.0))


def _boundary_of_work(trace: Trace, graph: Graph, starts: Int64s, end: int) -> Int64s:
    """Work belongs to the step in which it was launched: it ends no later than the boundary after that step. What was
    launched before the first step belongs to the first boundary."""
    result = np.full(len(graph), NONE, np.int64)
    work = graph.nodes(NodeKind.WORK)
    launched = launch_moments(trace.gpu, trace.api, int(starts[0]), end)[graph.row[work]]
    result[work] = np.where(launched < end, np.searchsorted(starts, launched, side="right"), NONE)
    return result
