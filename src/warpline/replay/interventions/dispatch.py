"""Fixes of dispatch: the same work, launched with less CPU time."""

from __future__ import annotations

import numpy as np

from warpline.replay.bench import Bench
from warpline.replay.interventions import constants
from warpline.replay.interventions.registry import intervention
from warpline.replay.model import CALL, JOIN, RELEASE, SEGMENT, STREAM, Bools, Int64s
from warpline.replay.scene import Scene
from warpline.trace.nesting import NONE

HOST_WORK_NS = 1_500_000
"""A segment this long that no op covers is the program's own work (loading, logging), which no launch fix removes."""
LOADING_NS = 50_000
"""A segment with this much recognised loading stays too."""
LEAST_LAUNCHES = 4
"""Fewer launches than this are not worth a graph."""


def stays_on_host(scene: Scene) -> Bools:
    """CPU nodes that remain whatever becomes of the launches: long work between ops, and calls that wait."""
    graph = scene.graph
    length = graph.measured_end - graph.measured_start
    stays: Bools = (graph.kind == SEGMENT) & (length > HOST_WORK_NS) & (scene.op_share < 0.5)
    stays |= scene.input_share * length > LOADING_NS
    waiting = np.isin(graph.row, graph.row[graph.kind == RELEASE]) & np.isin(graph.kind, [CALL, RELEASE])
    stays |= waiting & (graph.row != NONE)
    return stays


def launch_runs(scene: Scene, wanted: Bools) -> list[Int64s]:
    """Runs of CPU nodes of one thread, in steps, that are not interrupted by anything that stays on the host."""
    graph = scene.graph
    usable = np.isin(graph.kind, [SEGMENT, CALL, JOIN]) & scene.in_steps
    cut = stays_on_host(scene) | (usable & ~wanted)
    runs: list[Int64s] = []
    repeated = len(scene.trace.steps) > 0 and scene.trace.steps["found_by"][0] == "repetition"
    for lane in np.unique(graph.lane[usable]):
        nodes = np.flatnonzero(usable & (graph.lane == lane))
        marks = cut[nodes].copy()
        change = np.flatnonzero(np.diff(scene.step[nodes]) != 0) + 1 if not repeated else np.empty(0, np.int64)
        step = np.searchsorted(change, np.arange(len(nodes)), side="right")
        group = np.cumsum(marks) * (len(change) + 1) + step
        kept = nodes[~marks]
        keys = group[~marks]
        bounds = np.flatnonzero(np.diff(keys)) + 1
        runs += [run for run in np.split(kept, bounds) if len(run)]
    return runs


@intervention(
    "cuda_graph",
    60,
    "The launches of each step are captured once and replayed as a CUDA graph.",
    "Shapes and control flow do not change between steps, and inputs are copied into fixed buffers.",
    "Waits, blocking copies and long host work stay, and cut the capture into pieces: one graph each.",
    "Kernels keep their durations; between them lies the gap of a graph's nodes.",
)
def cuda_graph(bench: Bench, case: int) -> int:
    """CPU time of each piece becomes one launch, and gaps those within a graph."""
    scene, graph = bench.scene, bench.graph
    everything = np.ones(len(graph), bool)
    calls_of_work = scene.call_of_work[scene.work]
    launches = np.zeros(len(graph), np.int64)
    alive = (calls_of_work != NONE) & ~bench.gone[scene.work]
    np.add.at(launches, calls_of_work[alive], 1)
    already = np.array(["GraphLaunch" in name for name in scene.call_name])
    captured = np.zeros(len(graph), bool)
    for run in launch_runs(scene, everything):
        count = int(launches[run].sum())
        if count < LEAST_LAUNCHES or already[run].any():
            continue
        first = int(run[np.flatnonzero(launches[run] > 0)[0]])
        graph.duration[run] = 0.0
        cost = constants.GRAPH_LAUNCH_NS.at(case) + count * constants.GRAPH_NODE_NS.at(case)
        graph.duration[first] = cost
        captured[run] = True
    inside = np.zeros(len(graph), bool)
    inside[scene.work[alive]] = captured[calls_of_work[alive]]
    gaps = (graph.edge_kind == STREAM) & inside[graph.edge_to]
    graph.lag[gaps] = np.minimum(graph.lag[gaps], constants.GRAPH_GAP_NS.at(case))
    return int(inside.sum())
