"""The step without a profiler: measured by the run that made the trace, or estimated from what recording costs.

Every recorded CPU event costs the program some time: an op, an API call, a Python frame, a memory event. The cost of
recording is the number of events times their costs (`host.RecordingCosts`), taken from the CPU segments and calls in
which the events lie. A step that waits for the GPU hardly changes, a dispatch-bound one shrinks. GPU work keeps its
times: its recording costs nothing that a stopwatch shows (memory-bound loops on an H200: 2.68 ms bare, 2.67 recorded).

Recording makes ops and calls longer, and leaves waits for data or for the device as they are. So the idle time that it
added lies where the host launches, or where it records while it loads; taken from all causes alike, a step whose GPU
waits for data would seem to wait for launches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from warpline.analyses.idle.host_activity import DRIVER_LOADING
from warpline.capture.run_folder import timed_step
from warpline.estimate import Estimate
from warpline.library_names import PROFILER_STEP
from warpline.replay.costs.host import RecordingCosts
from warpline.replay.costs.own_costs import MIN_LEFT
from warpline.replay.graph.model import Graph, NodeKind
from warpline.trace.arrays import NONE, Floats, Int64s
from warpline.trace.launches import nodes_of_calls
from warpline.trace.trace import Trace

CASES = LOW_STEP, EXPECTED_STEP, HIGH_STEP = range(3)
"""The bare step: low (recording is expensive), expected and high."""
PROFILER_STEP_FRAME = r"profiler/profiler\.py\(\d+\): step$"
NOT_RECORDING = rf"{DRIVER_LOADING}|unknown|unrecognized|undefined"
"""Overhead that is CUDA's, which loads and compiles code, or of which nothing says that it is the profiler's."""
LAUNCHING = ("dispatch", "launch_latency")
"""Causes of idle time that recording makes longer."""
MOST_STRAY = 1.25
"""Maximum distance of the range of a timed step from its median."""
MIN_UNEVEN_LAPS = 12
"""Fewer uneven steps show no mean: of a loader with two workers, every fourth step was five times as long."""


class BareSteps(Struct, frozen=True):
    """Graphs of the trace without the cost of recording, in the low, expected and high case, and their steps."""

    graphs: list[Graph]
    steps_ns: list[float]
    timed_ns: Estimate | None
    """What the run's stopwatch showed before recording. It replaces the estimated step and leaves the graphs alone:
    fitted to it, they predict fixed steps worse (docs/ranges.md)."""

    @property
    def estimated_ns(self) -> float:
        """The step of the expected graph."""
        return self.steps_ns[EXPECTED_STEP]

    @property
    def expected_ns(self) -> float:
        """The step without a profiler, measured or estimated."""
        return self.timed_ns.expected if self.timed_ns else self.estimated_ns


def find_bare_steps(
    trace: Trace, graph: Graph, costs: RecordingCosts, step_of: Callable[[Graph], float], uneven: bool
) -> BareSteps:
    """Remove the recording overhead, and look up the bare step if the run timed it before recording; `uneven`: the
    recorded steps, of which the mean counts."""
    events = RecordedEvents(trace, graph)
    graphs = [_without(graph, recording_cost(graph, events, costs, case)) for case in CASES]
    return BareSteps(graphs, [step_of(one) for one in graphs], timed_ns(trace.file, uneven))


def timed_ns(trace: Path, uneven: bool) -> Estimate | None:
    """The step that `warpline run` timed before it recorded this file, with its range; None if it did not.

    Of uneven steps the mean counts, and few of them need not have a long one among them.
    """
    # Steps that still became faster say more than an estimate: `run` keeps none that are slower than recorded ones.
    timed = timed_step(trace, settled=False)
    if timed is None:
        return None
    if uneven:
        laps = np.array(timed.laps_ns, np.float64)
        return _mean_ns(laps) if len(laps) >= MIN_UNEVEN_LAPS else None
    middle = timed.median_ns
    # One step that was disturbed says nothing about the others.
    return Estimate(max(timed.min_ns, middle / MOST_STRAY), middle, min(timed.max_ns, middle * MOST_STRAY))


def _mean_ns(laps: Floats) -> Estimate:
    """The mean, with twice its standard error."""
    mean, error = float(laps.mean()), 2 * float(laps.std(ddof=1)) / math.sqrt(len(laps))
    return Estimate(max(mean - error, mean / MOST_STRAY), mean, min(mean + error, mean * MOST_STRAY))


def _without(graph: Graph, cost: Floats) -> Graph:
    return replace(graph, duration=np.maximum(graph.duration - cost, 0.0))


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
    own = np.minimum(stepping + events.flushes, duration)
    return own + np.minimum(wanted, (1 - MIN_LEFT) * (duration - own))


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
        is_call = graph.kind == NodeKind.CALL
        self.nodes[is_call] = np.append(nodes_of_calls(trace.gpu, trace.api), 0)[graph.row[is_call]]
        threads = trace.ranges.thread
        marks = np.flatnonzero(trace.ranges.name.like(PROFILER_STEP) & (threads != NONE))
        lanes.add(self.steps, threads[marks], trace.ranges.start_ns[marks], 1.0)
        frames = trace.python[trace.python.name.like(PROFILER_STEP_FRAME)]
        flushes = trace.overhead[~trace.overhead.name.like(NOT_RECORDING)]
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
            on_lane = threads == lane
            if not on_lane.any():
                continue
            spot = np.searchsorted(self._starts[lane], moments[on_lane], side="right") - 1
            inside = spot >= 0
            weight = cost[on_lane][inside] if isinstance(cost, np.ndarray) else np.full(int(inside.sum()), cost)
            totals += np.bincount(nodes[spot[inside]], weight, len(totals))


def bare_idle_ns(recorded_ns: Mapping[str, float], bare_ns: float, loading_share: float) -> dict[str, float]:
    """The recorded idle time per step by cause, brought to `bare_ns` in all.

    `loading_share` is the part of the recording cost that lies in time in which the host loads data.
    """
    left = {cause: 0.0 if cause == "profiler" else float(length) for cause, length in recorded_ns.items()}
    added = sum(left.values()) - bare_ns
    if added > 0:
        _take(left, ("input",), loading_share * added)
        _take(left, LAUNCHING, sum(left.values()) - bare_ns)
    # What is left beyond that, or missing, has no cause of its own.
    scale = bare_ns / max(sum(left.values()), 1.0)
    return {cause: scale * length for cause, length in left.items()}


def _take(left: dict[str, float], causes: tuple[str, ...], amount: float) -> None:
    """Takes so much from these causes together, in proportion to their lengths, and no more than they have."""
    have = sum(left[cause] for cause in causes)
    part = min(max(amount, 0.0) / have, 1.0) if have else 0.0
    for cause in causes:
        left[cause] *= 1 - part
