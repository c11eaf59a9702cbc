"""Who encloses whom: parents and depths of nested intervals, and the innermost one around a moment.

A stack sweep in Python takes a second per two million events; these take milliseconds, because they
count opened and closed intervals with sorting alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warpline.trace.columns import NONE, Int64s


@dataclass(frozen=True, slots=True)
class Nest:
    """Intervals sorted by (lane, start, longest first), with each one's parent among them.

    A lane is a thread: intervals of different lanes never enclose each other.
    """

    lanes: Int64s
    starts: Int64s
    ends: Int64s
    parents: Int64s
    """Position of the smallest interval that encloses it, or NONE."""
    depths: Int64s

    def innermost(self, lanes: Int64s, moments: Int64s) -> Int64s:
        """Position of the innermost interval of that lane which is open at that moment, or NONE."""
        if not len(self.starts):
            return np.full(len(moments), NONE, np.int64)
        lane_starts = np.searchsorted(self.lanes, lanes, side="left")
        found = _last_started(self.lanes, self.starts, lanes, moments)
        found[found < lane_starts] = NONE
        while True:
            closed = np.flatnonzero(found != NONE)
            closed = closed[self.ends[found[closed]] <= moments[closed]]
            if not len(closed):
                return found
            found[closed] = self.parents[found[closed]]


def order_for_nesting(lanes: Int64s, starts: Int64s, ends: Int64s) -> Int64s:
    """The order in which `nest` wants its rows: lane, start, longest first, file order."""
    return np.lexsort((-ends, starts, lanes))


def nest(lanes: Int64s, starts: Int64s, ends: Int64s) -> Nest:
    """Parents and depths of rows that are sorted by `order_for_nesting`.

    Intervals that overlap without nesting (clock skew between recorders) get the smallest interval that
    truly encloses them.
    """
    count = len(starts)
    if not count:
        empty = np.empty(0, np.int64)
        return Nest(lanes, starts, ends, empty, empty)
    # An empty interval is open for half a nanosecond, so that it has a parent and is nobody's.
    opened = 2 * starts
    closed = np.maximum(2 * ends, opened + 1)
    level = np.arange(count) - _closed_before(lanes, opened, closed)
    parents = _previous_of_level_above(level)
    while True:
        wrong = np.flatnonzero(parents != NONE)
        candidate = parents[wrong]
        wrong = wrong[(closed[candidate] < closed[wrong]) | (lanes[candidate] != lanes[wrong])]
        if not len(wrong):
            break
        parents[wrong] = parents[parents[wrong]]
    return Nest(lanes, starts, ends, parents, _depths(parents))


def _closed_before(lanes: Int64s, opened: Int64s, closed: Int64s) -> Int64s:
    """For each row, how many rows of its and earlier lanes have closed when it opens."""
    order = np.lexsort((closed, lanes))
    return np.add(_last_started(lanes[order], closed[order], lanes, opened), 1)


def _last_started(sorted_lanes: Int64s, sorted_times: Int64s, lanes: Int64s, times: Int64s) -> Int64s:
    """Position of the last (lane, time) that is not after the one asked for: a two-key searchsorted."""
    last = np.empty(len(lanes), np.int64)
    if not len(lanes):
        return last
    by_lane = np.argsort(lanes, kind="stable")
    asked_lanes, first = np.unique(lanes[by_lane], return_index=True)
    for lane, asked in zip(asked_lanes, np.split(by_lane, first[1:]), strict=True):
        begin, end = np.searchsorted(sorted_lanes, [lane, lane + 1])
        last[asked] = begin - 1 + np.searchsorted(sorted_times[begin:end], times[asked], side="right")
    return last


def _previous_of_level_above(level: Int64s) -> Int64s:
    """For each row, the last earlier row whose level is one less."""
    parents = np.full(len(level), NONE, np.int64)
    order = np.argsort(level, kind="stable")
    bounds = np.searchsorted(level[order], np.arange(level.max() + 2))
    above = order[bounds[0] : bounds[1]]
    for depth in range(1, len(bounds) - 1):
        rows = order[bounds[depth] : bounds[depth + 1]]
        slot = np.searchsorted(above, rows) - 1
        if len(above):
            parents[rows] = np.where(slot >= 0, above[np.maximum(slot, 0)], NONE)
        above = rows
    return parents


def _depths(parents: Int64s) -> Int64s:
    """Number of ancestors, by doubling the distance looked up."""
    depths: Int64s = (parents != NONE).astype(np.int64)
    ancestor = parents.copy()
    while True:
        rows = np.flatnonzero(ancestor != NONE)
        if not len(rows):
            return depths
        # Read everything before writing: a row's ancestor may be updated in the same round.
        further_depth, further = depths[ancestor[rows]], ancestor[ancestor[rows]]
        depths[rows] += further_depth
        ancestor[rows] = further


def nearest_marked(parents: Int64s, marked: npt.NDArray[np.bool_]) -> Int64s:
    """For each row, itself if it is marked, else its nearest marked ancestor, or NONE."""
    nearest: Int64s = np.where(marked, np.arange(len(parents)), parents)
    while True:
        climbing = np.flatnonzero((nearest != NONE) & ~marked[nearest])
        if not len(climbing):
            return nearest
        nearest[climbing] = nearest[nearest[climbing]]


def outermost(parents: Int64s) -> Int64s:
    """For each row, the outermost that encloses it: itself where nothing does."""
    return nearest_marked(parents, parents == NONE)


def spread_to_parents(parents: Int64s, depths: Int64s, low: Int64s, high: Int64s) -> None:
    """Makes `low` and `high` of each row the minimum and maximum over itself and all it encloses, in place."""
    order = np.argsort(-depths, kind="stable")
    bounds = np.flatnonzero(np.diff(depths[order], prepend=-1)) if len(order) else np.empty(0, np.int64)
    for begin, end in zip(bounds, np.append(bounds[1:], len(order)), strict=False):
        rows = order[begin:end]
        rows = rows[parents[rows] != NONE]
        np.minimum.at(low, parents[rows], low[rows])
        np.maximum.at(high, parents[rows], high[rows])
