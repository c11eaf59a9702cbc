"""Parents and depths of nested intervals, and the innermost interval around a moment.

The work is done by `nest.c` where it was built (a few nanoseconds a row), else by NumPy with the same results.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from warpline.trace import nesting_native, nesting_numpy
from warpline.trace.arrays import NONE, Bools, Int64s

MICROSECOND_NS = 1_000
ROUNDED_TWICE = 2
"""Ticks by which a call may seem to outlast its caller: files give a start and a length, both rounded, so that an end
is off by up to one tick, and two ends differ by up to two."""


class Nest(Struct, frozen=True):
    """Intervals sorted by (lane, start, longest first), with each one's parent among them.

    A lane is a thread: intervals of different lanes never enclose each other.
    """

    lanes: Int64s
    starts: Int64s
    ends: Int64s
    parents: Int64s
    """Position of the last interval begun before it that encloses it, or NONE."""
    depths: Int64s

    def innermost(self, lanes: Int64s, moments: Int64s) -> Int64s:
        """Position of the innermost interval of that lane which is open at that moment, or NONE."""
        library = nesting_native.load_library()
        columns = self.lanes, self.starts, self.ends, self.parents, lanes, moments
        return nesting_native.innermost(library, *columns) if library else nesting_numpy.innermost(*columns)


def order_for_nesting(lanes: Int64s, starts: Int64s, ends: Int64s) -> Int64s:
    """The order in which `nest` wants its rows: lane, start, longest first, file order."""
    return np.lexsort((-ends, starts, lanes))


def nest(lanes: Int64s, starts: Int64s, ends: Int64s, tick_ns: int = 0) -> Nest:
    """Parents and depths of rows that are sorted by `order_for_nesting`.

    An interval encloses those that begin within it and end no later, or later by at most `tick_ns` where times are
    rounded to that: a call must not lose its caller to rounding. Intervals that overlap otherwise (clock skew between
    recorders) are no parents of each other.
    """
    library = nesting_native.load_library()
    if library:
        return Nest(lanes, starts, ends, *nesting_native.tree(library, lanes, starts, ends, tick_ns))
    parents = nesting_numpy.parents(lanes, starts, ends, tick_ns)
    return Nest(lanes, starts, ends, parents, nesting_numpy.depths(parents))


def clock_tick_ns(starts: Int64s, ends: Int64s) -> int:
    """To what these times are rounded: a microsecond if all intervals last whole ones, else a nanosecond.

    Lengths, not starts, since they stay as they are when a recording, or a part of it, is shifted in time.
    """
    for some in (slice(64), slice(None)):
        if ((ends[some] - starts[some]) % MICROSECOND_NS).any():
            return 1
    return MICROSECOND_NS


def nearest_marked(parents: Int64s, marked: Bools) -> Int64s:
    """For each row, itself if it is marked, else its nearest marked ancestor, or NONE."""
    library = nesting_native.load_library()
    found = nesting_native.nearest_marked(library, parents, marked) if library else None
    return nesting_numpy.nearest_marked(parents, marked) if found is None else found


def outermost(parents: Int64s) -> Int64s:
    """For each row, the outermost that encloses it: itself where nothing does."""
    return nearest_marked(parents, parents == NONE)


def levels(depths: Int64s) -> list[Int64s]:
    """Rows of the same depth, the outermost first, each in the given order."""
    few = len(depths) == 0 or int(depths.max()) < np.iinfo(np.int16).max
    # NumPy sorts 16 bits by counting, many times faster than 64.
    order = np.argsort(depths.astype(np.int16) if few else depths, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(depths[order])) + 1) if len(order) else []


def spread_to_parents(parents: Int64s, depths: Int64s, low: Int64s, high: Int64s) -> None:
    """Makes `low` and `high` of each row the minimum and maximum over itself and all it encloses, in place."""
    for level in reversed(levels(depths)):
        rows = level[parents[level] != NONE]
        np.minimum.at(low, parents[rows], low[rows])
        np.maximum.at(high, parents[rows], high[rows])


def totals(parents: Int64s, depths: Int64s, values: Int64s) -> Int64s:
    """The value of each row and of all rows that it encloses, summed."""
    result = values.copy()
    for level in reversed(levels(depths)):
        rows = level[parents[level] != NONE]
        np.add.at(result, parents[rows], result[rows])
    return result
