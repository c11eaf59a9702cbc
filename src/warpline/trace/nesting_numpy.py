"""Nesting with NumPy alone: what `nest.c` does in one pass, for machines where it was not built."""

from __future__ import annotations

import numpy as np

from warpline.trace.arrays import NONE, Bools, Int64s


def parents(lanes: Int64s, starts: Int64s, ends: Int64s, tick_ns: int) -> Int64s:
    """The last row before each one, on its lane, that encloses it.

    Every row first asks the one before it, and then whatever that one points to: a row that does not enclose another
    encloses none of the later ones which that one leaves out.
    """
    # In half nanoseconds: an empty interval is open for one, so that it has a parent and is nobody's.
    lengths = np.maximum(2 * (ends - starts), 1)
    found = np.arange(len(starts)) - 1
    asking = np.arange(len(starts))
    while len(asking):
        outer = found[asking]
        asking = asking[outer != NONE]
        outer = outer[outer != NONE]
        reach = lengths[outer] - 2 * (starts[asking] - starts[outer])
        excess = lengths[asking] - reach
        rounded = (excess <= 2 * tick_ns) & (reach > excess)
        encloses = (lanes[outer] == lanes[asking]) & ((excess <= 0) | rounded)
        asking, outer = asking[~encloses], outer[~encloses]
        found[asking] = np.where(lanes[outer] == lanes[asking], found[outer], NONE)
    return found


def depths(parents: Int64s) -> Int64s:
    """Number of ancestors, by doubling the distance looked up."""
    found: Int64s = (parents != NONE).astype(np.int64)
    ancestor = parents.copy()
    while True:
        rows = np.flatnonzero(ancestor != NONE)
        if not len(rows):
            return found
        # Read everything before writing: a row's ancestor may be updated in the same round.
        further_depth, further = found[ancestor[rows]], ancestor[ancestor[rows]]
        found[rows] += further_depth
        ancestor[rows] = further


def innermost(
    lanes: Int64s, starts: Int64s, ends: Int64s, parents: Int64s, asked_lanes: Int64s, moments: Int64s
) -> Int64s:
    """Position of the innermost interval of that lane which is open at that moment, or NONE."""
    if not len(starts):
        return np.full(len(moments), NONE, np.int64)
    found = _last_started(lanes, starts, asked_lanes, moments)
    found[found < np.searchsorted(lanes, asked_lanes, side="left")] = NONE
    while True:
        closed = np.flatnonzero(found != NONE)
        closed = closed[ends[found[closed]] <= moments[closed]]
        if not len(closed):
            return found
        found[closed] = parents[found[closed]]


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


def nearest_marked(parents: Int64s, marked: Bools) -> Int64s:
    """For each row, itself if it is marked, else its nearest marked ancestor, or NONE."""
    nearest: Int64s = np.where(marked, np.arange(len(parents)), parents)
    while True:
        climbing = np.flatnonzero((nearest != NONE) & ~marked[nearest])
        if not len(climbing):
            return nearest
        nearest[climbing] = nearest[nearest[climbing]]
