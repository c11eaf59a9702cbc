"""Ops that plan, compile or tune: they compute for longer than they dispatch."""

from __future__ import annotations

import numpy as np
import polars as pl

from warpline import api_names
from warpline.replay.graph.model import SEGMENT
from warpline.replay.scene import Scene
from warpline.trace.columns import NONE, Bools, Floats, Int64s, integers
from warpline.trace.names import rows_like

MIN_PLANNING_SHARE = 0.2
"""Minimum share of the step spent on planning if every step is cold."""


def planning_ops(scene: Scene, case: int) -> Bools:
    """Outermost ops (rows of `ops`, and one for none) that plan or compile: they compute for longer than they dispatch,
    and no other op of their name and shapes does."""
    graph, ops = scene.graph, scene.trace.ops
    segments, root = _computing(scene)
    computing, longest, within = (np.zeros(len(ops) + 1) for _ in range(3))
    np.add.at(computing, root, graph.duration[segments])
    np.maximum.at(longest, root, graph.duration[segments])
    np.add.at(within, scene.roots, 1.0)
    # Libraries query the driver while they plan: such a call is no dispatch of its own.
    calls = scene.call_of_work[scene.work]
    np.add.at(within, scene.root_op_of_call[np.unique(calls[calls != NONE])], 1.0)
    launches = np.append(rows_like(ops, api_names.COMPILING_OPS), False)
    launches[scene.root_op[scene.work]] = True
    host = scene.host
    much = (computing > host.own_work.at(case)) & (computing > host.longest_dispatch.expected * within)
    planning = much | (longest > host.long_work.expected)
    planning &= launches
    planning[NONE] = False
    planning &= ~_done_before(scene, np.flatnonzero(planning))
    return planning


def planned_in_many_steps(scene: Scene, planning: Bools, lengths: Floats) -> bool:
    """Whether half of the steps plan something of their own, and planning takes a large share of the time."""
    segments, root = _computing(scene)
    mine = segments[planning[root]]
    much = float(scene.graph.duration[mine].sum()) > MIN_PLANNING_SHARE * float(np.median(lengths)) * scene.step_count
    steps = np.unique(scene.step[mine])
    return much and int((steps != NONE).sum()) >= scene.step_count / 2


def _computing(scene: Scene) -> tuple[Int64s, Int64s]:
    """Segments inside ops that do not load data, and the outermost op of each."""
    inside = (scene.graph.kind == SEGMENT) & scene.in_steps & (scene.op_share > 0.5) & (scene.input_share < 0.3)
    segments = np.flatnonzero(inside)
    root = scene.root_op_at(segments)
    return segments[root != NONE], root[root != NONE]


def _done_before(scene: Scene, ops: Int64s) -> Bools:
    """Which of these ops other steps repeat with the same shapes: they are slow, but not because they are new."""
    table, steps = scene.trace.ops[ops], integers(scene.trace.steps_in_view["start_ns"])
    known = table.select(
        pl.col("name", "shapes").cast(pl.String), step=np.searchsorted(steps, integers(table["start_ns"]), side="right")
    )
    elsewhere = pl.col("step").n_unique().over("name", "shapes") > 1
    again = known.select(elsewhere & (pl.col("shapes").fill_null("") != ""))
    result = np.zeros(len(scene.trace.ops) + 1, bool)
    result[ops] = again.to_series().to_numpy()
    return result
