"""Runs of launches that nothing on the host interrupts: what can be captured or compiled as a whole."""

from __future__ import annotations

import numpy as np

from warpline.replay.costs.ranges import OPTIMISTIC
from warpline.replay.graph.model import CALL, JOIN, RELEASE, SEGMENT, SYNC
from warpline.replay.workbench import Workbench
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


def stays_on_host(bench: Workbench) -> Bools:
    """CPU nodes that remain whatever becomes of the launches: long work, loading, and calls that wait."""
    scene, graph = bench.scene, bench.graph
    length = graph.measured_end - graph.measured_start
    stays: Bools = np.isin(graph.kind, [SEGMENT, CALL]) & (graph.duration > HOST_WORK_NS)
    stays |= (scene.input_share * length > LOADING_NS) & (graph.duration > LOADING_NS)
    waiting = np.unique(graph.row[graph.edge_to[graph.edge_kind == SYNC]])
    stays |= np.isin(graph.kind, [CALL, RELEASE]) & np.isin(graph.row, waiting[waiting != NONE])
    return stays


def waits_often(bench: Workbench, stays: Bools) -> bool:
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
    fewest = WORTH_A_PIECE if case != OPTIMISTIC and waits_often(bench, stays) else 0
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
