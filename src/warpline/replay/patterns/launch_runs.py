"""Runs of launches without host work in between, which can be captured or compiled as a whole."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from warpline.replay.costs.host import OWN_WORK_IN_OPS
from warpline.replay.graph.model import EdgeKind, NodeKind
from warpline.replay.graph_edit import GraphEdit
from warpline.replay.labelled_graph import LabelledGraph
from warpline.trace.arrays import NONE, Bools, Int64s, grouped
from warpline.trace.steps.choice import on_device

MAX_WAITS_PER_STEP = 3
"""Synchronizations per step above which a step counts as synchronizing repeatedly."""


def stays_on_host(edit: GraphEdit) -> Bools:
    """Host nodes that stay even if launches are removed: the program's own code, data loading, synchronizing calls."""
    labelled, graph = edit.labelled, edit.graph
    length, loading = graph.measured_end - graph.measured_start, labelled.host.longest_dispatch.expected
    stays: Bools = graph.of_kinds(NodeKind.SEGMENT, NodeKind.CALL) & (graph.duration > labelled.host.long_work.expected)
    stays |= (labelled.once(ops_begun) >= OWN_WORK_IN_OPS) & (graph.duration > labelled.host.own_work.expected)
    stays |= (labelled.input_share * length > loading) & (graph.duration > loading)
    waits = graph.marked_rows(graph.row[graph.edge_to[graph.edge_kind == EdgeKind.SYNC]])
    waits[NONE] = False
    stays |= graph.of_kinds(NodeKind.CALL, NodeKind.RELEASE) & waits[graph.row]
    return stays


def ops_begun(labelled: LabelledGraph) -> Int64s:
    """How many outermost ops begin in each segment, none of which launches anything before its end: but for views of
    the next op's inputs, they compute on the CPU."""
    segments, found = labelled.segments, np.zeros(len(labelled.graph), np.int64)
    outer = labelled.trace.ops[labelled.trace.ops.depth == 0]
    starts = dict(grouped(outer.start_ns, outer.thread))
    for lane, nodes in grouped(segments, labelled.graph.lane[segments]):
        moments = np.sort(starts.get(lane, np.empty(0, np.int64)))
        bounds = labelled.graph.measured_start[nodes], labelled.graph.measured_end[nodes]
        begin, end = (np.searchsorted(moments, some) for some in bounds)
        found[nodes] = end - begin
    return found


def own_code(edit: GraphEdit) -> Bools:
    """The program's own code, and data loading: stretches between calls that are too long for any dispatch."""
    return stays_on_host(edit) & (edit.graph.kind == NodeKind.SEGMENT)


def waits_often(edit: GraphEdit, stays: Bools) -> bool:
    """Whether a step synchronizes repeatedly."""
    waits = int((stays & (edit.graph.kind == NodeKind.CALL) & edit.labelled.in_steps).sum())
    return waits > MAX_WAITS_PER_STEP * edit.labelled.step_count


def launch_runs(edit: GraphEdit, wanted: Bools) -> list[Int64s]:
    """Runs of host nodes of one thread, within steps, without a node between them that stays on the host."""
    labelled, graph = edit.labelled, edit.graph
    usable = graph.of_kinds(NodeKind.SEGMENT, NodeKind.CALL, NodeKind.JOIN) & labelled.in_steps
    stays = stays_on_host(edit)
    cut = stays | (usable & ~wanted)
    runs: list[Int64s] = []
    repeated = on_device(labelled.trace.all_steps)
    for _, nodes in grouped(np.flatnonzero(usable), graph.lane[usable]):
        marks = cut[nodes]
        change = np.flatnonzero(np.diff(labelled.step[nodes]) != 0) + 1 if not repeated else np.empty(0, np.int64)
        step = np.searchsorted(change, np.arange(len(nodes)), side="right")
        group = np.cumsum(marks) * (len(change) + 1) + step
        others, keys = nodes[~marks], group[~marks]
        bounds = [0, *(np.flatnonzero(np.diff(keys)) + 1).tolist(), len(others)]
        runs += [others[first:beyond] for first, beyond in pairwise(bounds) if beyond > first]
    return runs
