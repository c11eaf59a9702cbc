"""Ops that plan, compile or tune: they compute for longer than they dispatch."""

from __future__ import annotations

import numpy as np
import polars as pl

from warpline.intervals import union
from warpline.replay.costs.ranges import Range
from warpline.replay.graph.model import CALL, SEGMENT, WORK
from warpline.replay.scene import Scene
from warpline.trace import api_names
from warpline.trace.columns import NONE, Bools, Floats, Int64s, integers
from warpline.trace.names import matches, named

STEADY_COLD_NS = 2_000_000
"""A stretch of this length inside an op that launches work is compiling, planning or tuning."""
PLANNING_NS = Range(300_000, 500_000, 2_000_000, "plans of cuFFT on an H200's host take 2 to 4 ms")
DISPATCH_NS = 30_000.0
"""An op that spends more CPU time than this for each call and op within it does more than to dispatch them."""
LEAST_PLANNING = 0.2
"""Share of the step that planning takes at least, where every step is cold."""


def planning_ops(scene: Scene, case: int) -> Bools:
    """Outermost ops (rows of `ops`, and one for none) that plan or compile: they compute for longer than they dispatch,
    and no other op of their name and shapes does."""
    graph, ops = scene.graph, scene.trace.ops
    segments, root = _computing(scene)
    computing, longest, within = (np.zeros(len(ops) + 1) for _ in range(3))
    np.add.at(computing, root, graph.duration[segments])
    np.maximum.at(longest, root, graph.duration[segments])
    np.add.at(within, scene.roots, 1.0)
    np.add.at(within, scene.root_op_of_call[graph.kind == CALL], 1.0)
    launches = np.append(matches(ops["name"], api_names.COMPILING_OPS).to_numpy(), False)
    launches[scene.root_op[scene.work]] = True
    planning = (computing > PLANNING_NS.at(case)) & (computing > DISPATCH_NS * within) | (longest > STEADY_COLD_NS)
    planning &= launches
    planning[NONE] = False
    planning &= ~_done_before(scene, np.flatnonzero(planning))
    return planning


def planned_in_many_steps(scene: Scene, planning: Bools, lengths: Floats) -> bool:
    """Whether every other step plans something of its own, and all of them together for a good part of their time."""
    segments, root = _computing(scene)
    mine = segments[planning[root]]
    much = float(scene.graph.duration[mine].sum()) > LEAST_PLANNING * float(np.median(lengths)) * scene.step_count
    steps = np.unique(scene.step[mine])
    return much and int((steps != NONE).sum()) >= scene.step_count / 2


def in_compiled_code(scene: Scene) -> Bools:
    """CPU nodes in which compiled code runs."""
    graph, regions = scene.graph, scene.trace.ops.filter(named(api_names.COMPILED_REGION))
    result = np.zeros(len(graph), bool)
    for (thread,), own in regions.filter(pl.col("thread").is_not_null()).group_by("thread"):
        spans = union(integers(own["start_ns"]), integers(own["end_ns"]))
        nodes = np.flatnonzero((graph.kind != WORK) & (graph.lane == thread))
        last = np.searchsorted(spans.starts, graph.measured_end[nodes]) - 1
        result[nodes] = (last >= 0) & (spans.ends[last] > graph.measured_start[nodes])
    return result


def _computing(scene: Scene) -> tuple[Int64s, Int64s]:
    """Segments inside ops that do not load data, and the outermost op of each."""
    inside = (scene.graph.kind == SEGMENT) & scene.in_steps & (scene.op_share > 0.5) & (scene.input_share < 0.3)
    segments = np.flatnonzero(inside)
    root = scene.root_op_at(segments)
    return segments[root != NONE], root[root != NONE]


def _done_before(scene: Scene, ops: Int64s) -> Bools:
    """Of these ops, those that other steps repeat with the same shapes: they are slow, and not because they are new."""
    table, steps = scene.trace.ops[ops], integers(scene.trace.steps_in_view["start_ns"])
    known = table.select(
        pl.col("name", "shapes").cast(pl.String), step=np.searchsorted(steps, integers(table["start_ns"]), side="right")
    )
    elsewhere = pl.col("step").n_unique().over("name", "shapes") > 1
    again = known.select(elsewhere & (pl.col("shapes").fill_null("") != ""))
    result = np.zeros(len(scene.trace.ops) + 1, bool)
    result[ops] = again.to_series().to_numpy()
    return result
