"""Loops of a program, visible as repeated groups of GPU activities, and the ops of each iteration."""

from __future__ import annotations

import numpy as np

from warpline.replay.labelled_graph import LabelledGraph
from warpline.trace.arrays import NONE, Bools, Int64s, Texts

MIN_REPEATS = 4
LONGEST_PERIOD = 96
"""GPU activities in one iteration: one sample through a transformer block has thirty to sixty."""
SHORT_PERIOD = 12
"""Up to this length every period is tried; longer ones only if a label repeats at that distance."""
GATHERING = ("aten::stack", "aten::cat")
"""Ops that join the results of iterations; a batched loop does not need them."""
SHAPING = ("aten::as_strided", "aten::view", "aten::_reshape_alias")
"""Innermost ops of views, which record the shape of the view."""


def loops(nodes: Int64s, labels: Int64s, step: Int64s) -> list[Int64s]:
    """Runs of equal groups within a step, as tables with one row per iteration; the shortest period that fits."""
    size, steps = len(nodes), step[nodes]
    period_at, repeats_at = np.zeros(size, np.int64), np.zeros(size, np.int64)
    for period in sorted(_periods(labels), reverse=True):
        same = (labels[:-period] == labels[period:]) & (steps[:-period] == steps[period:])
        # The length of the equal run that starts at each: the distance to the next unequal one.
        ends = np.minimum.accumulate(np.where(same, len(same), np.arange(len(same)))[::-1])[::-1]
        repeats = (ends - np.arange(len(same))) // period + 1
        enough = np.flatnonzero(repeats >= MIN_REPEATS)
        period_at[enough], repeats_at[enough] = period, repeats[enough]
    found: list[Int64s] = []
    beyond = 0
    for begin in np.flatnonzero(period_at).tolist():
        if begin >= beyond:
            beyond = begin + int(repeats_at[begin] * period_at[begin])
            found.append(nodes[begin:beyond].reshape(-1, period_at[begin]))
    return found


def begun_before(nodes: Int64s, names: Texts, iterations: Int64s, step: Int64s) -> Int64s:
    """GPU activity of iterations directly before a loop that lack some of the others' work, or use other shapes.

    The first iteration of an accumulating loop has nothing to add to, or a number; the second adds out of place.
    """
    wanted = [name.rstrip("_") for name in names[iterations[0]].tolist()]
    before = nodes[: np.searchsorted(nodes, iterations[0, 0])]
    before = before[step[before] == step[iterations[0, 0]]]
    begin = len(before)
    while (earlier := _partial_iteration(before[:begin], names, wanted)) > len(wanted) // 2:
        begin -= earlier
    return before[begin:]


def _partial_iteration(nodes: Int64s, names: Texts, wanted: list[str]) -> int:
    """How many of the last nodes match an iteration, in order."""
    count, left = 0, list(wanted)
    for node in nodes[: -len(wanted) - 1 : -1].tolist():
        name = names[node].rstrip("_")
        while left and left[-1] != name:
            left.pop()
        if not left:
            break
        left.pop()
        count += 1
    return count


def gathered_after(labelled: LabelledGraph, stream: Int64s, last: int) -> Int64s:
    """GPU activity of gathering ops directly after a node on a stream, within its step."""
    after = stream[np.searchsorted(stream, last, side="right") :]
    is_gathering = np.append(labelled.trace.ops.name.equal(*GATHERING), False)[labelled.root_op[after]]
    others = np.flatnonzero(~is_gathering | (labelled.step[after] != labelled.step[last]))
    return after[: others[0]] if len(others) else after


def _periods(labels: Int64s) -> set[int]:
    """Possible lengths of an iteration: short ones, and distances at which a label repeats."""
    order = np.argsort(labels, kind="stable")
    distance = np.diff(order)[np.diff(labels[order]) == 0]
    count = np.bincount(distance[distance <= LONGEST_PERIOD], minlength=1)
    longer = np.flatnonzero(count >= MIN_REPEATS - 1)
    longest = min(SHORT_PERIOD, len(labels) - 1)
    return {*range(1, longest + 1), *longer[(longer > longest) & (longer < len(labels))].tolist()}


class RootOps:
    """The outermost ops of each thread, in order."""

    def __init__(self, labelled: LabelledGraph) -> None:
        self._labelled, ops = labelled, labelled.trace.ops
        self._starts, self._ends, self._threads = ops.start_ns, ops.end_ns, ops.thread
        self.call = labelled.op_calls.alone
        """What an op was called with."""
        self.names = ops.name.texts
        self.has_shapes: Bools = ops.shapes.where(lambda text: bool(text.strip("[] ")))
        """Ops with recorded shapes."""
        self._order = np.argsort(self._starts, kind="stable")
        self._begun = self._starts[self._order]
        self._is_root = ops.depth == 0

    def concrete(self, row: int) -> str:
        """The recorded numbers of an op."""
        return self._labelled.op_calls.recorded(row)[-1]

    def between(self, thread: int, start_ns: int, end_ns: int) -> Int64s:
        """Ops that a thread started between two moments."""
        rows = self._within(thread, start_ns, end_ns)
        return rows[self._is_root[rows]]

    def of_iteration(self, iterations: Int64s, position: int) -> Int64s:
        """The ops of one iteration, from the end of the previous one to the end of its last op; none for the first."""
        roots = self._labelled.root_op[iterations[max(position - 1, 0) : position + 1, -1]]
        if len(roots) < 2 or NONE in roots:
            return np.empty(0, np.int64)
        start, end = self._ends[roots].tolist()
        return self.between(int(self._threads[roots[1]]), start, end)

    def views(self, row: int) -> list[tuple[int, ...] | None]:
        """The shapes of the result of a view; empty if not recorded."""
        rows = self._within(int(self._threads[row]), int(self._starts[row]), int(self._ends[row]))
        return [self.call(one).integers(1) for one in rows[self.named(rows, *SHAPING)].tolist()]

    def iterations_with(self, iterations: Int64s, *names: str) -> int:
        """In how many iterations ops with these names start, without the first."""
        roots = self._labelled.root_op[iterations[:, -1]]
        if NONE in roots:
            return 0
        rows = self.between(int(self._threads[roots[0]]), int(self._ends[roots[0]]), int(self._ends[roots[-1]]))
        return len(np.unique(np.searchsorted(self._ends[roots], self._starts[rows[self.named(rows, *names)]])))

    def named(self, rows: Int64s, *names: str) -> Bools:
        """Which of these ops have one of the names."""
        return self._labelled.trace.ops.name[rows].equal(*names)

    def _within(self, thread: int, start_ns: int, end_ns: int) -> Int64s:
        begin, end = np.searchsorted(self._begun, [start_ns, end_ns]).tolist()
        rows = self._order[begin:end]
        return rows[self._threads[rows] == thread]
