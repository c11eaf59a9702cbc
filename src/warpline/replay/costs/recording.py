"""The profiler's own cost, taken out: what the step takes when nobody records it.

Every recorded CPU event costs the program some time: an op, an API call, a Python frame, a memory event. The costs
below are subtracted from the CPU segments and calls in which those events lie, and the graph is replayed; a step that
waits for the GPU hardly changes, a dispatch-bound one shrinks. GPU work keeps its times: its recording costs nothing
that a stopwatch shows (memory-bound loops on an H200: 2.68 ms bare, 2.67 ms recorded).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from warpline.replay.graph.model import CALL, SEGMENT, STREAM, THREAD, WORK, Graph
from warpline.replay.graph.streams import graph_calls
from warpline.sources.rows import PROFILER_STEP
from warpline.trace.api_names import KERNEL_LAUNCH
from warpline.trace.columns import NONE, Floats, Int64s, integers
from warpline.trace.names import named
from warpline.trace.trace import Trace

CASES = LOW_STEP, EXPECTED_STEP, HIGH_STEP = range(3)
"""The bare step at its lowest (recording cost much), as expected, and at its highest."""


@dataclass(frozen=True, slots=True)
class EventCosts:
    """What recording one event costs the CPU, in nanoseconds."""

    op_ns: float
    """Of an op that calls nothing itself: a view, an allocation, an op of the CPU or around others."""
    calling_op_ns: float
    """Of an op that makes an API call."""
    call_ns: float
    frame_ns: float
    triton_ns: float
    """Of a kernel that inductor launches, beside its op and its call: it describes the launch to the profiler."""
    node_ns: float
    """Of a node of a CUDA graph, in the call that launches the graph."""
    gap_ns: float
    """Between two nodes of a CUDA graph, on the device."""
    memory_ns: float
    step_ns: float
    """Of one call of the profiler's own step(), where the trace does not show it."""


KINETO = EventCosts(
    op_ns=1_750.0,
    calling_op_ns=7_700.0,
    call_ns=7_600.0,
    frame_ns=420.0,
    triton_ns=7_000.0,
    node_ns=700.0,
    gap_ns=130.0,
    memory_ns=150.0,
    step_ns=70_000.0,
)
"""torch 2.11 on an H200 host: fitted to 782 profiles of 203 small programs, with and without stacks, faulty and cured,
which were recorded by turns with a stopwatch (faults), 61 of the programs twice; inductor's launches to one
program of 33 to 48 of them, nodes and gaps to 18 graphs of 4 to 550 (their launches take 12 µs and 0.75 µs a node while
they are recorded)."""
STEPPING = 3.7
"""What step() costs, in times of the pause between two ProfilerStep ranges: the pause is the middle of it, and about as
much lies before and after, within the ranges."""
NSYS = EventCosts(
    op_ns=400.0,
    calling_op_ns=400.0,
    call_ns=1_000.0,
    frame_ns=400.0,
    triton_ns=0.0,
    node_ns=0.0,
    gap_ns=0.0,
    memory_ns=0.0,
    step_ns=0.0,
)
"""nsys 2025.3 adds less; not yet calibrated against a stopwatch."""
SPREAD = (1.25, 1.0, 0.75)
"""How far the costs vary between programs, machines and moments. The low case takes most out."""
CLOSE_CALL_NS = 20_000
"""A launch that follows another call within this time finds its code and data in the caches, whatever the program."""
REFERENCE_LAUNCH_NS = 3_560.0
"""Lower quartile of such launches, recorded on such a host at its fastest; fitted with the costs (the least seen was
3,680)."""
HOST_PASSES = 0.385
"""Recorded CPU times of one program on one host vary by 1.8 times from run to run, and launch calls vary with them;
the bare times hardly do. So of a host that launches k times as slowly as the reference, k to the power of this is taken
for the host, and the rest for a bad moment. Fitted with the costs; for other hosts than Hopper's, where the reference
says nothing, a slow host is a slow host."""
FEWEST_LAUNCHES = 5
REFERENCE_MAJOR = 9
NEAR_EVENTS_NS = 3_500.0
"""Only so much CPU time around each event scales with the host's moment: sleeps and long computations do not."""
LEAST_SHARE, LEAST_SHARE_OF_OPS, LEAST_LEFT = 0.62, 0.41, 0.2
"""A segment or call keeps at least this share of its recorded length after the cost of ops and calls: the first where
its events are calls and ops that call (which mostly reach it: recording takes 38 % of a launch), the second where they
are ops that do not, whose own work is next to nothing; and the last after the cost of Python frames and of graphs,
which may be most of what was recorded."""
TRITON = r"^triton_"
PROFILER_STEP_FRAME = r"profiler/profiler\.py\(\d+\): step$"


def recording_cost(
    trace: Trace, graph: Graph, case: int = EXPECTED_STEP, counts: RecordedEvents | None = None
) -> Floats:
    """What recording, and a bad moment of the host, cost each CPU node. What a segment cannot bear, its call bears."""
    costs = NSYS if trace.source == "nsys" else KINETO
    counts = counts or RecordedEvents(trace, graph)
    slowness, passes = counts.slowness, HOST_PASSES if _on_reference_host(trace) else 1.0
    events = counts.ops + counts.calling_ops + counts.calls
    near: Floats = np.where(graph.kind == WORK, 0.0, np.minimum(graph.duration, NEAR_EVENTS_NS * (events + 0.5)))
    moment = near * (1 - slowness ** (passes - 1))
    left = graph.duration - moment
    per_event = counts.ops * costs.op_ns + counts.calling_ops * costs.calling_op_ns
    per_event += counts.calls * costs.call_ns + counts.memory * costs.memory_ns
    heavy = counts.frames * costs.frame_ns + counts.triton * costs.triton_ns + counts.nodes * costs.node_ns
    seen = counts.step_frames if counts.step_frames.any() else counts.steps * STEPPING * _pause_ns(trace)
    stepping = seen * slowness ** (passes - 1) if seen.any() else counts.steps * costs.step_ns * slowness**passes
    own: Floats = np.minimum(stepping + counts.flushes, left)
    left = left - own
    scale = slowness**passes
    left = np.where(graph.kind == WORK, 0.0, left)
    least = LEAST_SHARE + (LEAST_SHARE_OF_OPS - LEAST_SHARE) * counts.ops / np.maximum(events, 0.5)
    wanted, bearable = scale * per_event, (1 - least) * left
    taken: Floats = np.minimum(wanted, bearable)
    rest = wanted - taken
    into_call = (graph.edge_kind == THREAD) & (graph.kind[graph.edge_from] == SEGMENT)
    into_call &= graph.kind[graph.edge_to] == CALL
    source, target = graph.edge_from[into_call], graph.edge_to[into_call]
    taken[target] = np.minimum(taken[target] + rest[source], bearable[target])
    taken += np.minimum(scale * heavy, np.maximum((1 - LEAST_LEFT) * left - taken, 0.0))
    most = np.where(graph.kind == WORK, 0.0, (1 - LEAST_LEFT) * (graph.duration - own))
    cost: Floats = own + np.minimum(SPREAD[case] * (moment + taken), np.maximum(most, moment + taken))
    return cost


def recorded_gaps(trace: Trace, graph: Graph, case: int = EXPECTED_STEP) -> Floats:
    """What recording adds between the nodes of a CUDA graph, for each edge."""
    costs = NSYS if trace.source == "nsys" else KINETO
    calls = np.append(graph_calls(trace), NONE)
    call: Int64s = np.where(graph.kind == WORK, calls[np.where(graph.kind == WORK, graph.row, NONE)], NONE)
    within = (graph.edge_kind == STREAM) & (call[graph.edge_from] != NONE)
    within &= call[graph.edge_from] == call[graph.edge_to]
    return np.where(within, np.minimum(SPREAD[case] * costs.gap_ns, np.maximum(graph.lag, 0.0)), 0.0)


def _pause_ns(trace: Trace) -> float:
    """Median time between the end of one ProfilerStep and the begin of the next; 0 with fewer than two."""
    marks = trace.ranges.filter(named(PROFILER_STEP), pl.col("thread").is_not_null()).sort("start_ns")
    pauses = integers(marks["start_ns"])[1:] - integers(marks["end_ns"])[:-1]
    return float(max(np.median(pauses), 0)) if len(pauses) else 0.0


def _on_reference_host(trace: Trace) -> bool:
    major = trace.devices["compute_major"].drop_nulls()
    return trace.source != "nsys" and bool(len(major)) and int(major[0]) >= REFERENCE_MAJOR


def _host_slowness(trace: Trace) -> float:
    """How slow the host was against the reference, by its kernel launches; 1 where the trace has too few."""
    worked = np.zeros(len(trace.api) + 1, dtype=bool)
    worked[integers(trace.gpu["api_id"])] = True  # a launch into a graph that is being captured starts nothing
    calls = trace.api.with_columns(worked=worked[:-1]).filter(pl.col("thread").is_not_null()).sort("thread", "start_ns")
    start, end, thread = (integers(calls[column]) for column in ("start_ns", "end_ns", "thread"))
    close = np.zeros(len(calls), dtype=bool)
    close[1:] = (start[1:] - end[:-1] <= CLOSE_CALL_NS) & (thread[1:] == thread[:-1])
    launch = calls.select(hit=named(KERNEL_LAUNCH).fill_null(False) & pl.col("worked"))["hit"].to_numpy()
    lengths = (end - start)[launch & close if (launch & close).sum() >= FEWEST_LAUNCHES else launch]
    if len(lengths) < FEWEST_LAUNCHES or trace.source == "nsys":
        return 1.0
    return float(np.clip(np.quantile(lengths, 0.25) / REFERENCE_LAUNCH_NS, 0.6, 2.5))


class RecordedEvents:
    """Recorded events in each CPU node, half at their begin, half at their end; and how slow the host was."""

    def __init__(self, trace: Trace, graph: Graph) -> None:
        self.slowness = _host_slowness(trace)
        lanes, size = _Lanes(graph), len(graph)
        self.ops, self.calling_ops, self.calls, self.frames, self.triton = (np.zeros(size) for _ in range(5))
        self.memory = np.zeros(size)
        self.steps, self.step_frames, self.flushes, self.nodes = (np.zeros(size) for _ in range(4))
        calling = pl.Series(np.bincount(integers(trace.api["op_id"].drop_nulls()), minlength=len(trace.ops)) > 0)
        for table, totals in (
            (trace.ops.filter(~calling), self.ops),
            (trace.ops.filter(calling), self.calling_ops),
            (trace.ops.filter(named(TRITON)), self.triton),
            (trace.api, self.calls),
            (trace.python, self.frames),
        ):
            for column in ("start_ns", "end_ns"):
                lanes.add(totals, integers(table["thread"]), integers(table[column]), 0.5)
        lanes.add(self.memory, integers(trace.memory["thread"]), integers(trace.memory["time_ns"]), 1.0)
        calls = graph_calls(trace)
        launched = np.bincount(calls[calls != NONE], minlength=len(trace.api)).astype(np.float64)
        is_call = graph.kind == CALL
        self.nodes[is_call] = np.append(launched, 0.0)[graph.row[is_call]]
        marks = trace.ranges.filter(named(PROFILER_STEP), pl.col("thread").is_not_null())
        lanes.add(self.steps, integers(marks["thread"]), integers(marks["start_ns"]), 1.0)
        for table, totals in (
            (trace.python.filter(named(PROFILER_STEP_FRAME)), self.step_frames),
            (trace.overhead.filter(~named(r"(?i)lazy|module")), self.flushes),
        ):
            lengths = (integers(table["end_ns"]) - integers(table["start_ns"])).astype(np.float64)
            lanes.add(totals, integers(table["thread"]), integers(table["start_ns"]), lengths)


class _Lanes:
    """Finds the CPU node in which a moment of a thread lies."""

    def __init__(self, graph: Graph) -> None:
        cpu = np.flatnonzero(graph.kind != WORK)
        order = cpu[np.argsort(graph.lane[cpu], kind="stable")]
        lanes, first = np.unique(graph.lane[order], return_index=True)
        self._nodes = dict(zip(lanes.tolist(), np.split(order, first[1:]), strict=True))
        self._starts = {lane: np.maximum.accumulate(graph.measured_start[nodes]) for lane, nodes in self._nodes.items()}

    def add(self, totals: Floats, threads: Int64s, moments: Int64s, cost: float | Floats) -> None:
        """Adds the cost to the nodes of these moments; threads that made no call have no nodes."""
        for lane, nodes in self._nodes.items():
            mine = threads == lane
            if not mine.any():
                continue
            spot = np.searchsorted(self._starts[lane], moments[mine], side="right") - 1
            inside = spot >= 0
            weight = cost[mine][inside] if isinstance(cost, np.ndarray) else np.full(int(inside.sum()), cost)
            totals += np.bincount(nodes[spot[inside]], weight, len(totals))
