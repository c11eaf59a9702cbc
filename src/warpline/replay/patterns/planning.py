"""Ops that plan, compile or tune: they compute for longer than they dispatch."""

from __future__ import annotations

import numpy as np

from warpline import api_names
from warpline.replay.graph.model import NodeKind
from warpline.replay.labelled_graph import LabelledGraph
from warpline.trace.arrays import NONE, Bools, Floats, Int64s, combinations

MIN_PLANNING_SHARE = 0.2
"""Minimum share of the step spent on planning if every step is cold."""


def planning_ops(labelled: LabelledGraph, case: int) -> Bools:
    """Outermost ops (rows of `ops`, and one for none) that plan or compile: they compute for longer than they dispatch,
    and no other op of their name and shapes does."""
    graph, ops = labelled.graph, labelled.trace.ops
    segments, root = _computing(labelled)
    computing, longest, within = (np.zeros(len(ops) + 1) for _ in range(3))
    np.add.at(computing, root, graph.duration[segments])
    np.maximum.at(longest, root, graph.duration[segments])
    np.add.at(within, labelled.roots, 1.0)
    # Libraries query the driver while they plan: such a call is no dispatch of its own.
    calls = labelled.call_of_work[labelled.work]
    np.add.at(within, labelled.root_op_of_call[np.unique(calls[calls != NONE])], 1.0)
    launches = np.append(ops.name.like(api_names.COMPILING_OPS), False)
    launches[labelled.root_op[labelled.work]] = True
    host = labelled.host
    much = (computing > host.own_work.at(case)) & (computing > host.longest_dispatch.expected * within)
    planning = much | (longest > host.long_work.expected)
    planning &= launches
    planning[NONE] = False
    planning &= ~_done_before(labelled, np.flatnonzero(planning))
    return planning


def planned_in_many_steps(labelled: LabelledGraph, planning: Bools, lengths: Floats) -> bool:
    """Whether half of the steps plan something of their own, and planning takes a large share of the time."""
    segments, root = _computing(labelled)
    planned = segments[planning[root]]
    much = (
        float(labelled.graph.duration[planned].sum())
        > MIN_PLANNING_SHARE * float(np.median(lengths)) * labelled.step_count
    )
    steps = np.unique(labelled.step[planned])
    return much and int((steps != NONE).sum()) >= labelled.step_count / 2


def _computing(labelled: LabelledGraph) -> tuple[Int64s, Int64s]:
    """Segments inside ops that do not load data, and the outermost op of each."""
    inside = (
        (labelled.graph.kind == NodeKind.SEGMENT)
        & labelled.in_steps
        & (labelled.op_share > 0.5)
        & (labelled.input_share < 0.3)
    )
    segments = np.flatnonzero(inside)
    root = labelled.root_op_at(segments)
    return segments[root != NONE], root[root != NONE]


def _done_before(labelled: LabelledGraph, ops: Int64s) -> Bools:
    """Which of these ops other steps repeat with the same shapes: they are slow, but not because they are new."""
    table = labelled.trace.ops[ops]
    step = np.searchsorted(labelled.trace.steps_in_view.start_ns, table.start_ns, side="right")
    _, alike = combinations(table.name.codes, table.shapes.codes)
    first, last = (np.full(len(ops), step_number) for step_number in (step.max(initial=0), 0))
    np.minimum.at(first, alike, step)
    np.maximum.at(last, alike, step)
    result = np.zeros(len(labelled.trace.ops) + 1, bool)
    result[ops] = (first < last)[alike] & table.shapes.where(bool)
    return result
