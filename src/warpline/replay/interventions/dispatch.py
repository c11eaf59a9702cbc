"""Fixes of dispatch: the same work, launched with less CPU time."""

from __future__ import annotations

import numpy as np

from warpline import api_names
from warpline.replay.bench import Bench
from warpline.replay.interventions import constants
from warpline.replay.interventions.registry import OPTIMISTIC, intervention
from warpline.replay.model import CALL, JOIN, RELEASE, SEGMENT, STREAM, SYNC, Bools, Int64s
from warpline.trace.nesting import NONE
from warpline.trace.steps import on_device

HOST_WORK_NS = 1_500_000
"""A segment this long is the program's own work (loading, logging, compiling), which no launch fix removes."""
MOST_WAITS = 3
"""Waits per step above which a step counts as one that waits again and again."""
WORTH_A_PIECE = 60
"""Calls without a wait in between, from which such a step's pieces are worth a graph each."""
LOADING_NS = 50_000
"""A segment with this much recognised loading stays too."""
LEAST_LAUNCHES = 4
"""Fewer launches than this are not worth a graph."""


def stays_on_host(bench: Bench) -> Bools:
    """CPU nodes that remain whatever becomes of the launches: long work, loading, and calls that wait."""
    scene, graph = bench.scene, bench.graph
    length = graph.measured_end - graph.measured_start
    stays: Bools = np.isin(graph.kind, [SEGMENT, CALL]) & (graph.duration > HOST_WORK_NS)
    stays |= (scene.input_share * length > LOADING_NS) & (graph.duration > LOADING_NS)
    waiting = np.unique(graph.row[graph.edge_to[graph.edge_kind == SYNC]])
    stays |= np.isin(graph.kind, [CALL, RELEASE]) & np.isin(graph.row, waiting[waiting != NONE])
    return stays


def launch_runs(bench: Bench, wanted: Bools, case: int) -> list[Int64s]:
    """Runs of CPU nodes of one thread, in steps, that are not interrupted by anything that stays on the host.

    A step that waits again and again cannot be captured or compiled as a whole: then only long runs count (a token of
    a decoder, an iteration of a solver), and in the best case all.
    """
    scene, graph = bench.scene, bench.graph
    usable = np.isin(graph.kind, [SEGMENT, CALL, JOIN]) & scene.in_steps
    stays = stays_on_host(bench)
    waits = int((stays & (graph.kind == CALL) & scene.in_steps).sum())
    fewest = WORTH_A_PIECE if case != OPTIMISTIC and waits > MOST_WAITS * scene.step_count else 0
    cut = stays | (usable & ~wanted)
    runs: list[Int64s] = []
    repeated = on_device(scene.trace.steps)
    for lane in np.unique(graph.lane[usable]):
        nodes = np.flatnonzero(usable & (graph.lane == lane))
        marks = cut[nodes]
        change = np.flatnonzero(np.diff(scene.step[nodes]) != 0) + 1 if not repeated else np.empty(0, np.int64)
        step = np.searchsorted(change, np.arange(len(nodes)), side="right")
        group = np.cumsum(marks) * (len(change) + 1) + step
        kept, keys = nodes[~marks], group[~marks]
        runs += [run for run in np.split(kept, np.flatnonzero(np.diff(keys)) + 1) if len(run)]
    return [run for run in runs if int((graph.kind[run] == CALL).sum()) >= fewest]


@intervention(
    "cuda_graph",
    60,
    "The launches of each step are captured once and replayed as a CUDA graph.",
    "Shapes and control flow do not change between steps, and inputs are copied into fixed buffers.",
    "Waits, blocking copies and long host work stay, and cut the capture into pieces: one graph each; with more than "
    "three waits in a step only pieces of at least 60 calls are captured, and in the best case all.",
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
    already = scene.calls_like(api_names.GRAPH_LAUNCH)
    captured = np.zeros(len(graph), bool)
    for run in launch_runs(bench, everything, case):
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
