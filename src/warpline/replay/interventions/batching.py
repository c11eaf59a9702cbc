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
from warpline.trace.trace import Trace
from warpline.work.parse import json_list

LEAST_REPEATS = 4
LONGEST_PERIOD = 12
SMALL_KERNEL_NS = 20_000
"""A longer kernel fills the device by itself: a batch of it takes the sum."""
VIEWS = ("aten::select", "aten::slice", "aten::narrow", "aten::split", "aten::unbind", "aten::index", "aten::chunk")
"""Ops that take one sample or head out of a tensor: a loop that calls them in each turn walks over a batch."""

GATHERING = ("aten::stack", "aten::cat")


@intervention(
    "batch",
    40,
    "A group of small kernels that is repeated for one sample after the other is launched once for all of them.",
    "Turns of a loop do not depend on each other if each takes its own part of a tensor, or multiplies a single row.",
    "The device time of the batch is a share of theirs, never below the longest of them or the roofline.",
    "The CPU takes as long for the batch as for a typical turn; nothing is cut into turns or gathered from them.",
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
            _keep_one_turn(bench, turns)
            bench.remove_ops(_cutting(scene, nodes, turns))
            bench.remove_work(_gathering(scene, nodes, turns))
            changed += turns[1:].size
    bench.remove_work(np.concatenate(removed), dispatch=False)
    return changed


def _keep_one_turn(bench: Bench, turns: Int64s) -> None:
    """The first turn keeps its CPU time, or a typical turn's where that is less: the first is often a cold one."""
    scene, graph = bench.scene, bench.graph
    calls = scene.call_of_work[turns[:, -1]]
    if NONE in calls:
        return
    lane = int(graph.lane[calls[0]])
    nodes = np.flatnonzero(~scene.is_work & (graph.lane == lane))
    ends = np.searchsorted(nodes, calls) + 1
    spent = np.append(0.0, graph.duration[nodes].cumsum())
    typical = float(np.median(np.diff(spent[ends])))
    # What precedes the loop lies in the segment before its first call: that stays as it is.
    first = nodes[max(ends[0] - int(np.median(np.diff(ends))) + 1, 0) : ends[0]]
    graph.duration[first] *= min(1.0, typical / max(float(graph.duration[first].sum()), 1.0))
    bench.remove_cpu(lane, int(graph.measured_end[calls[0]]), int(graph.measured_end[calls[-1]]))


def _cutting(scene: Scene, nodes: Int64s, turns: Int64s) -> Int64s:
    """Ops between the work before a loop and its first that take the turns' parts out of a tensor."""
    spot = int(np.searchsorted(nodes, turns[0, 0]))
    begin = scene.launch_moment[nodes[spot - 1]] if spot else scene.graph.origin_ns
    views = _views(scene.trace).filter(
        pl.col("depth") == 0, pl.col("start_ns").is_between(int(begin), int(scene.launch_moment[turns[0, 0]]))
    )
    return integers(views["row"])


def _views(trace: Trace) -> pl.DataFrame:
    return trace.ops.with_row_index("row").filter(pl.col("name").cast(pl.String).is_in(list(VIEWS)))


def _gathering(scene: Scene, nodes: Int64s, turns: Int64s) -> Int64s:
    """The work right after a loop that puts the results of its turns together."""
    after = nodes[np.searchsorted(nodes, turns[-1, -1], side="right") :][:1]
    around = scene.root_op[after]
    names = scene.trace.ops["name"].cast(pl.String)
    return after[[row != NONE and names[row] in GATHERING for row in around.tolist()]]


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
    begun = np.sort(integers(_views(scene.trace)["start_ns"]))
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
