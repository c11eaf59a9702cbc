"""The same small kernels, launched for one sample (or head) after the other, done once for a batch."""

from __future__ import annotations

import numpy as np
import polars as pl

from warpline.replay.bench import NOTHING, Bench
from warpline.replay.interventions import constants
from warpline.replay.interventions.registry import intervention
from warpline.replay.model import SYNC, Int64s
from warpline.replay.scene import Scene
from warpline.trace.link import integers
from warpline.trace.nesting import NONE
from warpline.work.parse import json_list

LEAST_REPEATS = 4
LONGEST_PERIOD = 12
SMALL_KERNEL_NS = 20_000
"""A longer kernel fills the device by itself: a batch of it takes the sum."""
VIEWS = ("aten::select", "aten::slice", "aten::narrow", "aten::split", "aten::unbind", "aten::index", "aten::chunk")
"""Ops that take one sample or head out of a tensor: a loop that calls them in each turn walks over a batch."""


@intervention(
    "batch",
    40,
    "A group of small kernels that is repeated for one sample after the other is launched once for all of them.",
    "Turns of a loop do not depend on each other if each takes its own part of a tensor, or multiplies a single row.",
    "The device time of the batch is a share of theirs, never below the longest of them or the roofline.",
)
def batch(bench: Bench, case: int) -> int:
    """Of each run of equal groups, the first stays, with the time of the batch."""
    scene, graph = bench.scene, bench.graph
    floor, changed, removed = scene.floor_ns(), 0, [NOTHING]
    labels = scene.name + "|" + scene.op_column("shapes")
    usable = scene.in_steps & ~bench.gone & scene.is_work
    for lane in np.unique(graph.lane[usable]):
        nodes = scene.work[(graph.lane[scene.work] == lane) & usable[scene.work]]
        for turns in _loops(nodes, np.unique(labels[nodes], return_inverse=True)[1], scene.step):
            if graph.duration[turns].max() > SMALL_KERNEL_NS or not _independent(scene, turns) or _waits(bench, turns):
                continue
            whole, longest = graph.duration[turns].sum(0), graph.duration[turns].max(0)
            least = np.minimum(floor[turns].sum(0), whole)
            graph.duration[turns[0]] = np.maximum(np.maximum(longest, constants.BATCHED.at(case) * whole), least)
            removed.append(turns[1:].reshape(-1))
            _remove_turns(bench, turns)
            changed += turns[1:].size
    bench.remove_work(np.concatenate(removed), dispatch=False)
    return changed


def _remove_turns(bench: Bench, turns: Int64s) -> None:
    """The CPU time of all turns but the first."""
    scene = bench.scene
    first, last = scene.call_of_work[turns[0, -1]], scene.call_of_work[turns[-1, -1]]
    if NONE not in (first, last):
        begin, end = int(scene.graph.measured_end[first]), int(scene.graph.measured_end[last])
        bench.remove_cpu(int(scene.graph.lane[first]), begin, end)


def _loops(nodes: Int64s, codes: Int64s, step: Int64s) -> list[Int64s]:
    """Runs of equal groups within a step, as tables with a row a turn; where several periods fit, the shortest."""
    size, steps = len(nodes), step[nodes]
    period_at, repeats_at = np.zeros(size, np.int64), np.zeros(size, np.int64)
    for period in range(min(LONGEST_PERIOD, size - 1), 0, -1):
        same = (codes[:-period] == codes[period:]) & (steps[:-period] == steps[period:])
        # How many in a row are the same from each on: the distance to the next that is not.
        ends = np.minimum.accumulate(np.where(same, len(same), np.arange(len(same)))[::-1])[::-1]
        repeats = (ends - np.arange(len(same))) // period + 1
        enough = np.flatnonzero(repeats >= LEAST_REPEATS)
        period_at[enough], repeats_at[enough] = period, repeats[enough]
    found: list[Int64s] = []
    beyond = 0
    for begin in np.flatnonzero(period_at).tolist():
        if begin >= beyond:
            beyond = begin + int(repeats_at[begin] * period_at[begin])
            found.append(nodes[begin:beyond].reshape(-1, period_at[begin]))
    return found


def _independent(scene: Scene, turns: Int64s) -> bool:
    """Whether each turn takes its own part of a tensor, or multiplies a single row."""
    if any(_single_row(shapes) for shapes in set(scene.op_column("shapes")[turns[0]].tolist())):
        return True
    moments = scene.launch_moment[turns]
    views = scene.trace.ops.filter(pl.col("name").cast(pl.String).is_in(list(VIEWS)))
    begun = np.sort(integers(views["start_ns"]))
    between = np.searchsorted(begun, moments[1:, 0]) - np.searchsorted(begun, moments[:-1, 0])
    return bool(len(between) and (between > 0).mean() > 0.9)


def _waits(bench: Bench, turns: Int64s) -> bool:
    """Whether the CPU waits for the device inside the loop, so that a turn may depend on the one before."""
    moments = bench.scene.launch_moment[turns]
    waiting = bench.graph.edge_to[bench.graph.edge_kind == SYNC]
    when = bench.graph.measured_start[waiting]
    return bool(((when > moments[0, 0]) & (when < moments[-1, -1])).any())


def _single_row(shapes: str) -> bool:
    matrices = [size for size in json_list(shapes) if isinstance(size, list) and len(size) == 2]
    return len(matrices) >= 2 and matrices[0][0] == 1 and matrices[0][1] > 1
