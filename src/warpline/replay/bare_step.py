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
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from warpline.analyses.idle.gaps import Gaps, idle_gaps
from warpline.analyses.idle.host_activity import DRIVER_LOADING
from warpline.capture.run_folder import timed_step
from warpline.estimate import Estimate
from warpline.intervals import union
from warpline.library_names import PROFILER_STEP
from warpline.replay.costs.host import RecordingCosts
from warpline.replay.costs.own_costs import MIN_LEFT
from warpline.replay.graph.model import Graph, NodeKind
from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.ranges import bare_range, calm_step_ns
from warpline.replay.replay import Replay
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
"""Maximum distance of the range of a timed step from its median, and of what workers need from their CPU time."""
MIN_UNEVEN_LAPS = 12
"""Fewer uneven steps show no mean: of a loader with two workers, every fourth step was five times as long."""


class BareStep:
    """The step without a profiler, before any fix: how long it takes, and why the device is idle in it."""

    def __init__(self, trace: Trace, replayed: Replay) -> None:
        self._trace, self._replay = trace, replayed
        graph, events = replayed.graph, RecordedEvents(trace, replayed.graph)
        costs = (recording_cost(graph, events, replayed.costs.host.recording, case) for case in CASES)
        self.graphs = [replace(graph, duration=np.maximum(graph.duration - cost, 0.0)) for cost in costs]
        """The recorded graph without the cost of recording, for each of `CASES`."""
        self.steps_ns = [replayed.step_ns(one) for one in self.graphs]
        self.timed_ns = timed_ns(trace.file, replayed.is_uneven)
        """What the run's stopwatch showed before recording. It replaces the estimated step and leaves the graphs alone:
        fitted to it, they predict fixed steps worse (docs/ranges.md)."""
        self.labelled = LabelledGraph(trace, self.graphs[EXPECTED_STEP], replayed.marks, replayed.costs)

    @property
    def estimated_ns(self) -> float:
        """The step of the expected graph."""
        return self.steps_ns[EXPECTED_STEP]

    @property
    def expected_ns(self) -> float:
        """The step, measured or estimated."""
        return self.timed_ns.expected if self.timed_ns else self.estimated_ns

    @property
    def step_ns(self) -> Estimate:
        """The step with its range."""
        return self.timed_ns or bare_range(self.estimated_ns, self.idle_share, self.calm_ns)

    @property
    def step_from(self) -> str:
        """`measured` by the run that made the trace, or `estimated`."""
        return "measured" if self.timed_ns else "estimated"

    # A slow host, which may be busy with something else.

    @property
    def slowness(self) -> float:
        """How many times slower than the reference host the host was, where that leaves the step in doubt: no stopwatch
        ran."""
        return 1.0 if self.timed_ns else self._replay.costs.host.excess

    @cached_property
    def calm_ns(self) -> float:
        """The step if the host was slow only while it recorded."""
        return self.on_calm_host_ns(self.expected_ns, (1 - self.idle_share) * self.expected_ns)

    def on_calm_host_ns(self, step_ns: float, busy_ns: float) -> float:
        """A step, this one or one with fixes, if the host was slow only while it recorded. The device works for
        `busy_ns` of it."""
        if self.slowness == 1.0:
            return step_ns
        # A faster host would not shorten the idle time that is not spent on launches.
        waits_ns = sum(length for cause, length in self.idle_ns.items() if cause not in LAUNCHING)
        return calm_step_ns(step_ns, busy_ns, min(waits_ns, max(step_ns - busy_ns, 0.0)), self.slowness)

    # Idle time of the busiest device.

    @cached_property
    def recorded_gaps(self) -> Gaps:
        """The gaps of the recorded window."""
        return idle_gaps(self._trace, self.labelled.host_time, busiest=True)[0]

    @cached_property
    def idle_ns(self) -> dict[str, float]:
        """Idle time of the step by cause."""
        steps = max(self._replay.marks.count, 1)
        recorded = {cause: length / steps for cause, length in self.recorded_gaps.totals().items()}
        recording = np.where(self.labelled.is_work, 0.0, self._replay.graph.duration - self.labelled.graph.duration)
        loading = float((recording * self.labelled.input_share).sum()) / max(float(recording.sum()), 1.0)
        return bare_idle_ns(recorded, self.idle_share * self.expected_ns, loading)

    @cached_property
    def idle_share(self) -> float:
        """Share of the step in which the device is idle; overlapping streams count once."""
        graph, work = self.labelled.graph, np.flatnonzero(self.labelled.is_work & self.labelled.has_step)
        device = self.labelled.work_number("device")[work]
        of_devices = (work[device == number] for number in np.unique(device))
        busy_ns = max(
            (union(graph.measured_start[of], graph.measured_end[of]).total_ns() for of in of_devices), default=0
        )
        return max(0.0, 1 - busy_ns / max(self._replay.marks.count, 1) / self.expected_ns)


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
