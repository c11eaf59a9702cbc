"""The same small kernels, launched for one sample (or head) after the other, done once for a batch."""

from __future__ import annotations

import numpy as np
import polars as pl

from warpline.replay.bench import NOTHING, Bench
from warpline.replay.interventions import constants
from warpline.replay.interventions.gathering import gathered_after
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
SELECTING = ("aten::select", "aten::slice", "aten::narrow", "aten::index")
"""Ops that take one sample or head out of a tensor: a loop that calls them in each turn may walk over a batch."""
CUTTING = ("aten::split", "aten::unbind", "aten::chunk")
"""Ops that take all of them out at once."""
MOST_TURNS = 0.9
"""In so many of its turns a loop takes a part out of a tensor."""


@intervention(
    "batch",
    40,
    "A group of small kernels that is repeated for one sample after the other is launched once for all of them.",
    "Turns do not depend on each other if a tensor is cut into parts for them, their results are put together (or each "
    "multiplies a single row), and no turn merges two tensors of one shape, as one that carries a state does.",
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
            if graph.duration[turns].max() > SMALL_KERNEL_NS or _waits(bench, turns):
                continue
            loop = _Loop(scene, nodes, turns)
            if not loop.is_independent:
                continue
            whole, longest = graph.duration[turns].sum(0), graph.duration[turns].max(0)
            least = np.minimum(floor[turns].sum(0), whole)
            graph.duration[turns[0]] = np.maximum(np.maximum(longest, constants.BATCHED.at(case) * whole), least)
            removed.append(turns[1:].reshape(-1))
            _keep_one_turn(bench, turns, loop.gathered_ns)
            bench.remove_ops(loop.cutting)
            bench.remove_work(loop.gathering)
            changed += turns[1:].size
    bench.remove_work(np.concatenate(removed), dispatch=False)
    return changed


class _Loop:
    """A run of equal groups of work, and the ops around it."""

    def __init__(self, scene: Scene, nodes: Int64s, turns: Int64s) -> None:
        self._scene, self._turns = scene, turns
        self._begun = scene.launch_moment[turns[:, 0]]
        ops, before = scene.trace.ops, int(np.searchsorted(nodes, turns[0, 0]))
        begin = int(scene.launch_moment[nodes[before - 1]]) if before else scene.graph.origin_ns
        views = ops.with_row_index("row").filter(
            pl.col("depth") == 0, pl.col("start_ns").is_between(begin, int(self._begun[-1])),
            pl.col("name").cast(pl.String).is_in([*SELECTING, *CUTTING]),
        )  # fmt: skip
        self._views = integers(views["start_ns"])
        self._cuts = bool(views["name"].cast(pl.String).is_in(list(CUTTING)).any())
        self.cutting = integers(views.filter(pl.col("start_ns") < int(self._begun[0]))["row"])
        """Rows of `ops` that take the turns' parts out of a tensor, ahead of the first."""
        self.gathering = gathered_after(scene, nodes, int(turns[-1, -1]))
        """The work right after the loop that puts the results of its turns together."""

    @property
    def gathered_ns(self) -> int | None:
        """When that was dispatched."""
        if not len(self.gathering):
            return None
        return int(self._scene.trace.ops["end_ns"][int(self._scene.root_op[self.gathering[-1]])])

    @property
    def is_independent(self) -> bool:
        """Whether its turns seem not to depend on each other."""
        shapes = {_shapes(text) for text in self._scene.op_column("shapes")[self._turns[0]].tolist()}
        if any(_merges(sizes) for sizes in shapes):
            return False
        each = np.diff(np.searchsorted(np.sort(self._views), self._begun)) > 0
        takes_parts = self._cuts or bool(each.mean() > MOST_TURNS)
        return takes_parts and (len(self.gathering) > 0 or any(_single_row(sizes) for sizes in shapes))


def _keep_one_turn(bench: Bench, turns: Int64s, gathered_ns: int | None) -> None:
    """The first turn keeps its CPU time, or a typical turn's where that is less: the first is often a cold one.

    What follows it goes, to the end of the last turn, or of the op that gathers the results.
    """
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
    bench.remove_cpu(lane, int(graph.measured_end[calls[0]]), gathered_ns or int(graph.measured_end[calls[-1]]))


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


def _waits(bench: Bench, turns: Int64s) -> bool:
    """Whether the CPU waits for the device inside the loop, so that a turn may depend on the one before."""
    moments = bench.scene.launch_moment[turns]
    waiting = bench.graph.edge_to[bench.graph.edge_kind == SYNC]
    when = bench.graph.measured_start[waiting]
    return bool(((when > moments[0, 0]) & (when < moments[-1, -1])).any())


def _shapes(text: str) -> tuple[tuple[int, ...], ...]:
    """Sizes of an op's tensors; lists of tensors and scalars are left out."""
    sizes = [size for size in json_list(text) if isinstance(size, list) and size]
    return tuple(tuple(size) for size in sizes if all(isinstance(one, int) for one in size))


def _merges(sizes: tuple[tuple[int, ...], ...]) -> bool:
    """Whether an op has two tensors of one shape, other than of a square product."""
    return len(sizes) > 1 and sizes[0] == sizes[1] and not (len(sizes[0]) > 1 and sizes[0][-1] == sizes[0][-2])


def _single_row(sizes: tuple[tuple[int, ...], ...]) -> bool:
    matrices = [size for size in sizes if len(size) == 2]
    return len(matrices) >= 2 and matrices[0][0] == 1 and matrices[0][1] > 1
