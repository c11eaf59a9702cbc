"""The profiler's own cost, taken out: what the step takes when nobody records it.

Every recorded CPU event costs the program some time: an op, an API call, a Python frame, a memory event. The costs
below are subtracted from the CPU segments and calls in which those events lie, and the graph is replayed; a step that
waits for the GPU hardly changes, a dispatch-bound one shrinks. GPU work keeps its times: its recording costs nothing
that a stopwatch shows (memory-bound loops on an H200: 2.68 ms bare, 2.67 ms recorded).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from warpline.replay.model import CALL, SEGMENT, THREAD, WORK, Floats, Graph, Int64s
from warpline.trace.launches import is_launch
from warpline.trace.link import integers
from warpline.trace.trace import Trace

LOW, EXPECTED, HIGH = range(3)
CASES = ("low", "expected", "high")


@dataclass(frozen=True, slots=True)
class EventCosts:
    """What recording one event costs the CPU, in nanoseconds."""

    op_ns: float
    call_ns: float
    frame_ns: float
    memory_ns: float


KINETO = EventCosts(op_ns=1_700.0, call_ns=1_900.0, frame_ns=700.0, memory_ns=150.0)
"""torch 2.11 on an H200 host: bare loops against profiles of the same loops (benchmarks/replay_constants.py)."""
NSYS = EventCosts(op_ns=400.0, call_ns=1_000.0, frame_ns=400.0, memory_ns=0.0)
"""nsys 2025.3 adds less; not yet calibrated against a stopwatch, so its range is wide."""
SPREAD = (1.35, 1.0, 0.65)
"""How far the costs vary between machines and runs of one machine: the same profile taken twice differs by so much.
The low case takes most out."""
REFERENCE_LAUNCH_NS = 6_400.0
"""Median recorded launch call on the host where the costs were measured: a slower host pays more for each event."""
LEAST_SHARE = 0.25
"""A segment or call keeps at least this share of its recorded length."""


def bare_graph(trace: Trace, graph: Graph, case: int = EXPECTED, scale: float = 1.0) -> Graph:
    """The graph with the cost of recording taken out of its CPU nodes; `scale` multiplies that cost."""
    return replace(graph, duration=np.maximum(graph.duration - recording_cost(trace, graph, case, scale), 0.0))


def recording_cost(trace: Trace, graph: Graph, case: int = EXPECTED, scale: float = 1.0) -> Floats:
    """What recording cost each CPU node. What a segment cannot bear, the call after it bears."""
    costs = NSYS if trace.source == "nsys" else KINETO
    factor = SPREAD[case] * scale * _host_speed(trace)
    wanted = factor * _wanted(trace, graph, costs)
    bearable = (1 - LEAST_SHARE) * graph.duration
    taken: Floats = np.minimum(wanted, bearable)
    rest = wanted - taken
    into_call = (graph.edge_kind == THREAD) & (graph.kind[graph.edge_from] == SEGMENT)
    into_call &= graph.kind[graph.edge_to] == CALL
    source, target = graph.edge_from[into_call], graph.edge_to[into_call]
    taken[target] = np.minimum(taken[target] + rest[source], bearable[target])
    return taken


def _host_speed(trace: Trace) -> float:
    """How slow the host is against the reference, by its launch calls; 1 where the trace has too few."""
    launches = trace.api.filter(is_launch())
    lengths = integers(launches["end_ns"]) - integers(launches["start_ns"])
    if len(lengths) < 20 or trace.source == "nsys":
        return 1.0
    return float(np.clip(np.median(lengths) / REFERENCE_LAUNCH_NS, 0.5, 2.0))


def _wanted(trace: Trace, graph: Graph, costs: EventCosts) -> Floats:
    """The cost of all events that begin or end within each CPU node."""
    lanes = _Lanes(graph)
    wanted = np.zeros(len(graph))
    for table, cost in ((trace.ops, costs.op_ns), (trace.python, costs.frame_ns), (trace.api, costs.call_ns)):
        threads = integers(table["thread"])
        for column in ("start_ns", "end_ns"):
            lanes.add(wanted, threads, integers(table[column]), cost / 2)
    lanes.add(wanted, integers(trace.memory["thread"]), integers(trace.memory["time_ns"]), costs.memory_ns)
    overhead = trace.overhead.filter(~pl.col("name").cast(pl.String).str.contains("(?i)lazy|module").fill_null(False))
    lengths = (integers(overhead["end_ns"]) - integers(overhead["start_ns"])).astype(np.float64)
    lanes.add(wanted, integers(overhead["thread"]), integers(overhead["start_ns"]), lengths)
    return wanted


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
            np.add.at(totals, nodes[spot[inside]], weight)
