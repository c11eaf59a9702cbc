"""Bars that overlap lie in lanes below each other: in one lane bars nest or follow each other."""

from __future__ import annotations

import numpy as np

from warpline.trace.arrays import Int64s
from warpline.trace.nesting import nest

MOST_LANES = 4096
"""Bars that fit in none of so many lie in the last one, over others."""


def pack(starts: Int64s, ends: Int64s, tick_ns: int = 0) -> tuple[Int64s, Int64s]:
    """The lane of each bar, and its depth in it. Bars are sorted by start, the longer first.

    A bar nests in another also where it ends up to `tick_ns` later, by which times may be rounded. Bars of one lane and
    depth follow each other, and so do their ends.
    """
    lane = np.zeros(len(starts), np.int64)
    depths = nest(lane, starts, ends, tick_ns).depths
    if _follow(depths, starts, ends, tick_ns):
        return lane, depths
    return _first_fit(starts, ends, tick_ns)


def _follow(depths: Int64s, starts: Int64s, ends: Int64s, tick_ns: int) -> bool:
    """Whether the bars of each depth begin when the one before has ended, and end in the same order."""
    order = np.argsort(depths, kind="stable")
    together = depths[order][1:] == depths[order][:-1]
    begins_later = starts[order][1:] >= ends[order][:-1] - tick_ns
    ends_later = ends[order][1:] >= ends[order][:-1]
    return bool((begins_later & ends_later)[together].all())


def _first_fit(starts: Int64s, ends: Int64s, tick_ns: int) -> tuple[Int64s, Int64s]:
    """The first lane on which each bar nests in, or follows, those before it."""
    lanes, depths = np.zeros(len(starts), np.int64), np.zeros(len(starts), np.int64)
    open_bars: list[list[int]] = []
    """Of each lane, the ends of the bars that are open, the outermost first."""
    last_ends: list[dict[int, int]] = []
    """Of each lane, the last end of a bar of each depth."""
    for place, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        for lane in range(MOST_LANES):
            if lane == len(open_bars):
                open_bars.append([])
                last_ends.append({})
            inner = open_bars[lane]
            while inner and inner[-1] <= start:
                inner.pop()
            fits = not inner or end <= inner[-1] + tick_ns
            if lane == MOST_LANES - 1 or (fits and end >= last_ends[lane].get(len(inner), end)):
                break
        lanes[place], depths[place] = lane, len(inner)
        last_ends[lane][len(inner)] = end
        inner.append(min(end, inner[-1]) if inner else end)
    return lanes, depths
