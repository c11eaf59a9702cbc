"""Runs of launches without host work in between, which can be captured or compiled as a whole."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from warpline.replay.graph.model import CALL, JOIN, RELEASE, SEGMENT, SYNC
from warpline.replay.workbench import Workbench
from warpline.trace.columns import NONE, Bools, Int64s, grouped
from warpline.trace.steps import on_device

MAX_WAITS_PER_STEP = 3
"""Synchronizations per step above which a step counts as synchronizing repeatedly."""


def stays_on_host(bench: Workbench) -> Bools:
    """Host nodes that stay even if launches are removed: the program's own code, data loading, synchronizing calls."""
    scene, graph = bench.scene, bench.graph
    length, loading = graph.measured_end - graph.measured_start, scene.host.longest_dispatch.expected
    stays: Bools = graph.of_kinds(SEGMENT, CALL) & (graph.duration > scene.host.long_work.expected)
    stays |= (scene.input_share * length > loading) & (graph.duration > loading)
    waits = graph.marked_rows(graph.row[graph.edge_to[graph.edge_kind == SYNC]])
    waits[NONE] = False
    stays |= graph.of_kinds(CALL, RELEASE) & waits[graph.row]
    return stays


def waits_often(bench: Workbench, stays: Bools) -> bool:
    """Whether a step synchronizes repeatedly."""
    waits = int((stays & (bench.graph.kind == CALL) & bench.scene.in_steps).sum())
    return waits > MAX_WAITS_PER_STEP * bench.scene.step_count


def launch_runs(bench: Workbench, wanted: Bools) -> list[Int64s]:
    """Runs of host nodes of one thread, within steps, without a node between them that stays on the host."""
    scene, graph = bench.scene, bench.graph
    usable = graph.of_kinds(SEGMENT, CALL, JOIN) & scene.in_steps
    stays = stays_on_host(bench)
    cut = stays | (usable & ~wanted)
    runs: list[Int64s] = []
    repeated = on_device(scene.trace.steps)
    for _, nodes in grouped(np.flatnonzero(usable), graph.lane[usable]):
        marks = cut[nodes]
        change = np.flatnonzero(np.diff(scene.step[nodes]) != 0) + 1 if not repeated else np.empty(0, np.int64)
        step = np.searchsorted(change, np.arange(len(nodes)), side="right")
        group = np.cumsum(marks) * (len(change) + 1) + step
        kept, keys = nodes[~marks], group[~marks]
        bounds = [0, *(np.flatnonzero(np.diff(keys)) + 1).tolist(), len(kept)]
        runs += [kept[first:beyond] for first, beyond in pairwise(bounds) if beyond > first]
    return runs
