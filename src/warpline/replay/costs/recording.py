"""Removes the profiler overhead: the time of the step without recording.

Every recorded CPU event costs the program some time: an op, an API call, a Python frame, a memory event. The cost of
recording is the number of events times their costs (`host.RecordingCosts`), taken from the CPU segments and calls in
which the events lie. A step that waits for the GPU hardly changes, a dispatch-bound one shrinks. GPU work keeps its
times: its recording costs nothing that a stopwatch shows (memory-bound loops on an H200: 2.68 ms bare, 2.67 recorded).
"""

from __future__ import annotations

import numpy as np

from warpline.analyses.launches import graph_calls
from warpline.library_names import PROFILER_STEP
from warpline.replay.costs.host import RecordingCosts
from warpline.replay.costs.own_costs import MIN_LEFT
from warpline.replay.graph.model import Graph, NodeKind
from warpline.trace.arrays import NONE, Floats, Int64s
from warpline.trace.trace import Trace

CASES = LOW_STEP, EXPECTED_STEP, HIGH_STEP = range(3)
"""The bare step: low (recording is expensive), expected and high."""
PROFILER_STEP_FRAME = r"profiler/profiler\.py\(\d+\): step$"


def recording_cost(graph: Graph, events: RecordedEvents, costs: RecordingCosts, case: int = EXPECTED_STEP) -> Floats:
    """Recording cost of each CPU node; GPU nodes have none."""
    level = HIGH_STEP - case  # a high cost makes a low step
    wanted = (
        events.ops * costs.op.at(level)
        + events.calls * costs.call.at(level)
        + events.frames * costs.frame.at(level)
        + events.memory * costs.memory.at(level)
        + events.nodes * costs.graph_node.at(level)
    )
    # With stacks, the trace shows how long the profiler's step() took.
    stepping = events.step_frames if events.step_frames.any() else events.steps * costs.step.at(level)
    duration = np.where(graph.kind == NodeKind.WORK, 0.0, graph.duration)
    own: Floats = np.minimum(stepping + events.flushes, duration)
    result: Floats = own + np.minimum(wanted, (1 - MIN_LEFT) * (duration - own))
    return result


class RecordedEvents:
    """Number of recorded events in each CPU node, half counted at their start, half at their end."""

    def __init__(self, trace: Trace, graph: Graph) -> None:
        lanes, size = _Lanes(graph), len(graph)
        self.ops, self.calls, self.frames, self.memory, self.nodes = (np.zeros(size) for _ in range(5))
        self.steps, self.step_frames, self.flushes = (np.zeros(size) for _ in range(3))
        for table, totals in ((trace.ops, self.ops), (trace.api, self.calls), (trace.python, self.frames)):
            for moments in (table.start_ns, table.end_ns):
                lanes.add(totals, table.thread, moments, 0.5)
        lanes.add(self.memory, trace.memory.thread, trace.memory.time_ns, 1.0)
        calls = graph_calls(trace)
        launched = np.bincount(calls[calls != NONE], minlength=len(trace.api)).astype(np.float64)
        is_call = graph.kind == NodeKind.CALL
        self.nodes[is_call] = np.append(launched, 0.0)[graph.row[is_call]]
        threads = trace.ranges.thread
        marks = np.flatnonzero(trace.ranges.name.like(PROFILER_STEP) & (threads != NONE))
        lanes.add(self.steps, threads[marks], trace.ranges.start_ns[marks], 1.0)
        frames = trace.python[trace.python.name.like(PROFILER_STEP_FRAME)]
        flushes = trace.overhead[~trace.overhead.name.like(r"(?i)lazy|module")]
        for spans, totals in ((frames, self.step_frames), (flushes, self.flushes)):
            lanes.add(totals, spans.thread, spans.start_ns, (spans.end_ns - spans.start_ns).astype(np.float64))


class _Lanes:
    """Finds the CPU node at a moment of a thread."""

    def __init__(self, graph: Graph) -> None:
        cpu = np.flatnonzero(graph.kind != NodeKind.WORK)
        order = cpu[np.argsort(graph.lane[cpu], kind="stable")]
        lanes, first = np.unique(graph.lane[order], return_index=True)
        self._nodes = dict(zip(lanes.tolist(), np.split(order, first[1:]), strict=True))
        self._starts = {lane: np.maximum.accumulate(graph.measured_start[nodes]) for lane, nodes in self._nodes.items()}

    def add(self, totals: Floats, threads: Int64s, moments: Int64s, cost: float | Floats) -> None:
        """Adds the cost to the nodes at these moments; threads without calls have no nodes."""
        for lane, nodes in self._nodes.items():
            mine = threads == lane
            if not mine.any():
                continue
            spot = np.searchsorted(self._starts[lane], moments[mine], side="right") - 1
            inside = spot >= 0
            weight = cost[mine][inside] if isinstance(cost, np.ndarray) else np.full(int(inside.sum()), cost)
            totals += np.bincount(nodes[spot[inside]], weight, len(totals))
