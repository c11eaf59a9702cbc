"""Fixes of dispatch: the same work, launched with less CPU time."""

from __future__ import annotations

import numpy as np

from warpline.replay.costs import constants
from warpline.replay.graph.model import CALL, JOIN, RELEASE, SEGMENT, STREAM, SYNC
from warpline.replay.interventions.optimizers import counted_on_the_host
from warpline.replay.interventions.registry import OPTIMISTIC, PESSIMISTIC, intervention
from warpline.replay.interventions.waiting import awaited_calls
from warpline.replay.workbench import Workbench
from warpline.trace import api_names
from warpline.trace.columns import NONE, Bools, Int64s
from warpline.trace.steps import on_device

HOST_WORK_NS = 1_500_000
"""A segment this long is the program's own work (loading, logging, compiling), which no launch fix removes."""
MOST_WAITS = 3
"""Waits per step above which a step counts as one that waits again and again."""
WORTH_A_PIECE = 20
"""Calls without a wait in between, from which such a step's pieces are worth a graph each."""
LOADING_NS = 50_000
"""A segment with this much recognised loading stays too."""
LEAST_LAUNCHES = 4
"""Fewer launches than this are not worth a graph."""


def stays_on_host(bench: Workbench) -> Bools:
    """CPU nodes that remain whatever becomes of the launches: long work, loading, and calls that wait."""
    scene, graph = bench.scene, bench.graph
    length = graph.measured_end - graph.measured_start
    stays: Bools = np.isin(graph.kind, [SEGMENT, CALL]) & (graph.duration > HOST_WORK_NS)
    stays |= (scene.input_share * length > LOADING_NS) & (graph.duration > LOADING_NS)
    waiting = np.unique(graph.row[graph.edge_to[graph.edge_kind == SYNC]])
    stays |= np.isin(graph.kind, [CALL, RELEASE]) & np.isin(graph.row, waiting[waiting != NONE])
    return stays


def _waits_often(bench: Workbench, stays: Bools) -> bool:
    """Whether a step waits again and again."""
    waits = int((stays & (bench.graph.kind == CALL) & bench.scene.in_steps).sum())
    return waits > MOST_WAITS * bench.scene.step_count


def launch_runs(bench: Workbench, wanted: Bools, case: int) -> list[Int64s]:
    """Runs of CPU nodes of one thread, in steps, that are not interrupted by anything that stays on the host.

    A step that waits again and again cannot be captured or compiled as a whole: then only long runs count (a token of
    a decoder, an iteration of a solver), and in the best case all.
    """
    scene, graph = bench.scene, bench.graph
    usable = np.isin(graph.kind, [SEGMENT, CALL, JOIN]) & scene.in_steps
    stays = stays_on_host(bench)
    fewest = WORTH_A_PIECE if case != OPTIMISTIC and _waits_often(bench, stays) else 0
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
    "What is read of the results while the step goes on, up to three times, is no longer read, or after the step.",
    "Other waits, blocking copies and long host work stay, and cut the capture into pieces: one graph each; with more "
    "than three waits in a step only pieces of at least 20 calls are captured, and in the best case all.",
    "An optimiser that goes through the parameters one by one, with a count of steps on the host, is not captured.",
    "Kernels keep their durations; between them lies the gap of a graph's nodes.",
)
def cuda_graph(bench: Workbench, case: int) -> int:
    """CPU time of each piece becomes one launch, and gaps those within a graph."""
    scene = bench.scene
    if case != PESSIMISTIC:
        _read_later(bench)
    graph = bench.graph
    capturable = ~scene.once(counted_on_the_host)
    calls_of_work = scene.call_of_work[scene.work]
    launches = np.zeros(len(graph), np.int64)
    alive = (calls_of_work != NONE) & ~bench.gone[scene.work]
    np.add.at(launches, calls_of_work[alive], 1)
    already = scene.calls_like(api_names.GRAPH_LAUNCH)
    captured, stays = np.zeros(len(graph), bool), stays_on_host(bench)
    for run in launch_runs(bench, capturable, case):
        count = int(launches[run].sum())
        if count < LEAST_LAUNCHES or already[run].any():
            continue
        first = int(run[np.flatnonzero(launches[run] > 0)[0]])
        graph.duration[run] = 0.0
        cost = constants.GRAPH_LAUNCH_NS.at(case) + count * constants.GRAPH_NODE_NS.at(case)
        graph.duration[first] = cost
        _take_begin(bench, run, stays)
        captured[run] = True
    inside = np.zeros(len(graph), bool)
    inside[scene.work[alive]] = captured[calls_of_work[alive]]
    gaps = (graph.edge_kind == STREAM) & inside[graph.edge_to]
    graph.lag[gaps] = np.minimum(graph.lag[gaps], constants.GRAPH_GAP_NS.at(case))
    return int(inside.sum())


def _read_later(bench: Workbench) -> None:
    """Takes those waits out behind which a step goes on launching, where it does not wait again and again."""
    scene, graph = bench.scene, bench.graph
    calls = awaited_calls(scene)
    inputs = scene.root_op[(scene.kind == "memcpy") & (scene.work_text("copy_kind") == "HtoD")]
    calls = calls[(scene.step[calls] != NONE) & ~np.isin(scene.root_op_of_call[calls], inputs[inputs != NONE])]
    if not len(calls) or _waits_often(bench, stays_on_host(bench)):
        return
    last = np.zeros(scene.step.max() + 2, np.int64)
    np.maximum.at(last, scene.step[scene.work], scene.launch_moment[scene.work])
    bench.stop_waiting(calls[graph.measured_end[calls] < last[scene.step[calls]]])


def _take_begin(bench: Workbench, run: Int64s, stays: Bools) -> None:
    """Takes out what a captured run's step did before its first call, in a segment that began in the step before."""
    scene, graph = bench.scene, bench.graph
    segment = int(scene.segment_of_call[run[0]])
    if segment == NONE or scene.step[segment] >= scene.step[run[0]] or stays[segment]:
        return
    begin = int(scene.trace.steps_in_view["start_ns"][int(scene.step[run[0]])])
    length = graph.measured_end[segment] - graph.measured_start[segment]
    graph.duration[segment] *= (begin - graph.measured_start[segment]) / max(length, 1)
