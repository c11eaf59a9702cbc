"""Change points of a series: where its level changed for good, or for a while.

Binary segmentation on ranks: of all points after which the ranks differ from those before, the most unusual one is
tested by permutation. If it is chance, so is the window in the middle that differs most from the rest (circular binary
segmentation: Olshen and others, Biostatistics 2004), which finds a slowdown that was taken back. Each piece is then
searched again. Ranks make it robust to outliers and to the shape of the noise. With few points it abstains: no order of
them would be unusual.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from msgspec import Struct

from warpline.trace.arrays import Floats, Int64s

FALSE_ALARM = 0.005
"""How often a series without a change may be given one that lasts, and as often one that was taken back."""
MIN_LEVEL_POINTS = 3
"""Points of a level: two alike may be chance."""
MIN_POINTS = 12
"""Below so many points there is no answer: the most unusual of all orders is not rare enough."""
MAX_POINTS = 200
"""Only the last so many are searched: the work grows with their square."""
PERMUTATIONS = 1999
Windows = tuple[Int64s, Int64s]
"""First points of windows, and the points behind their last."""


class Level(Struct, frozen=True):
    """Consecutive points without a change among them."""

    start: int
    stop: int
    median: float


def levels(values: Sequence[float], least_effect: float) -> list[Level]:
    """The levels of the series, in order; neighbours differ by `least_effect` at least, as a share."""
    series = np.asarray(values, np.float64)
    if len(series) < MIN_POINTS:
        return [_level(series, 0, len(series))] if len(series) else []
    offset = max(0, len(series) - MAX_POINTS)
    cuts = sorted(offset + cut for cut in _cuts(series[offset:], 0))
    edges = _placed(series, [0, *cuts, len(series)])
    found: list[Level] = []
    for start, stop in pairwise(edges):
        level = _level(series, start, stop)
        if found and not _is_apart(series, found[-1], level, least_effect):
            level = _level(series, found.pop().start, stop)
        found.append(level)
    return found


def _level(series: Floats, start: int, stop: int) -> Level:
    return Level(start, stop, float(np.median(series[start:stop])))


def _placed(series: Floats, edges: list[int]) -> list[int]:
    """The same with each cut where the levels on its sides fit best: ranks tell that there is one, values where."""
    placed = list(edges)
    for cut in range(1, len(edges) - 1):
        start, stop = placed[cut - 1], placed[cut + 1]
        places = range(start + MIN_LEVEL_POINTS, stop - MIN_LEVEL_POINTS + 1)
        if places:
            placed[cut] = min(places, key=lambda place: _misfit(series[start:place]) + _misfit(series[place:stop]))
    return placed


def _misfit(values: Floats) -> float:
    return float(np.abs(values - np.median(values)).sum())


def _is_apart(series: Floats, left: Level, right: Level, least_effect: float) -> bool:
    from scipy.stats import mannwhitneyu  # noqa: PLC0415 - loads when it is used

    if abs(right.median - left.median) < least_effect * abs(left.median):
        return False
    test = mannwhitneyu(series[left.start : left.stop], series[right.start : right.stop])
    few = min(left.stop - left.start, right.stop - right.start) <= MIN_LEVEL_POINTS
    return few or float(test.pvalue) <= FALSE_ALARM


def _cuts(series: Floats, offset: int) -> list[int]:
    """Change points by recursion; after the first, a false one needs a true one before it."""
    if len(series) < 2 * MIN_LEVEL_POINTS:
        return []
    from scipy.stats import rankdata  # noqa: PLC0415 - loads when it is used

    ranks = rankdata(series)
    inner = _ends_of_change(ranks, _windows(len(ranks), for_good=True))
    inner = inner or _ends_of_change(ranks, _windows(len(ranks), for_good=False))
    edges = [0, *inner, len(series)]
    found = [offset + cut for cut in inner]
    for start, stop in pairwise(edges) if inner else ():
        found += _cuts(series[start:stop], offset + start)
    return found


def _ends_of_change(ranks: Floats, windows: Windows) -> list[int]:
    """Where the most unusual window begins and ends, if chance rarely gives one like it."""
    start, stop = windows
    if not len(start) or ranks.min() == ranks.max():
        return []
    own = _deviations(ranks, start, stop)
    best = int(np.argmax(own))
    draw = np.random.default_rng(0)
    allowed = math.floor(FALSE_ALARM * (PERMUTATIONS + 1)) - 1
    for _ in range(PERMUTATIONS):
        if _deviations(draw.permutation(ranks), start, stop).max() >= own[best] * (1 - 1e-9):
            allowed -= 1
            if allowed < 0:
                return []
    return [cut for cut in (int(start[best]), int(stop[best])) if 0 < cut < len(ranks)]


def _windows(count: int, for_good: bool) -> Windows:
    """The windows that leave whole levels on their sides: those that reach to the end, or all others."""
    if for_good:
        start = np.arange(MIN_LEVEL_POINTS, count - MIN_LEVEL_POINTS + 1)
        return start, np.full(len(start), count)
    start, stop = np.triu_indices(count + 1, MIN_LEVEL_POINTS)
    fits = (start >= MIN_LEVEL_POINTS) & (count - stop >= MIN_LEVEL_POINTS)
    return start[fits], stop[fits]


def _deviations(ranks: Floats, start: Int64s, stop: Int64s) -> Floats:
    """How many standard deviations the sum of each window's ranks is from what chance gives."""
    count, inside = len(ranks), stop - start
    sums = np.append(0.0, np.cumsum(ranks - ranks.mean()))
    variance = ranks.var() * inside * (count - inside) / (count - 1)
    return np.abs(sums[stop] - sums[start]) / np.sqrt(variance)
