"""The period of a sequence: the distance at which its items repeat, and the repeating part."""

from __future__ import annotations

from collections import Counter

import numpy as np
from msgspec import Struct

from warpline.trace.arrays import FIBONACCI, Hashes

LEAST_REPEATS = 3
SHORTEST_TWICE = 8
"""A sequence of so many items that comes twice, and is the same both times, repeats too."""
SAMPLES = 24
"""Places at which the sequence is asked when the same comes again."""
LAGS_TRIED = 96
AS_GOOD = 0.95
"""A shorter period is preferred if it explains this share of what the best one explains."""
LEAST_COVERED = 0.5
"""Share of the sequence that must repeat."""


class Period(Struct, frozen=True):
    """A stretch [first, beyond) of a sequence in which each item equals the one `length` later."""

    first: int
    beyond: int
    length: int

    @property
    def repeats(self) -> int:
        """Number of complete repeats."""
        return (self.beyond - self.first) // self.length


def find_period(items: Hashes, same: float) -> Period | None:
    """The shortest period that explains the sequence as well as any.

    At least the share `same` of the items equal the item one period later, over half of the sequence and over three
    repeats, or two of a long period that are equal to the last item.

    A layer repeats within a step, but not across its end, where a step goes on repeating: so the step explains more.
    Where every step is nothing but equal layers, nothing in the sequence tells them from steps, and the layer is taken.
    """
    found = [scored for lag in _lags(items) if (scored := _stretch(items, lag, same)) is not None]
    if not found:
        return None
    best = max(score for score, _ in found)
    return min((period for score, period in found if score >= AS_GOOD * best), key=lambda period: period.length)


def _lags(items: Hashes) -> list[int]:
    """Distances at which the same comes again, seen from some places through windows of growing length."""
    size = len(items)
    places = np.unique(np.linspace(0, max(0, size * 2 // 3), SAMPLES).astype(np.int64))
    lags: Counter[int] = Counter()
    window, base, hashed = 1, FIBONACCI, items.copy()
    while len(hashed):
        for place in places[places < len(hashed)]:
            after = hashed[place + 1 :] == hashed[place]
            distance = int(after.argmax()) + 1 if len(after) else 0
            if distance and after[distance - 1]:
                lags[distance] += 1
        if len(hashed) <= window:
            break
        hashed = hashed[:-window] * base + hashed[window:]
        window *= 2
        base = np.uint64(pow(int(FIBONACCI), window, 1 << 64))
    return [lag for lag, _ in lags.most_common(LAGS_TRIED)]


def _stretch(items: Hashes, lag: int, same: float) -> tuple[float, Period] | None:
    """The stretch that repeats best at this distance, and how many items it explains: each that is equal counts one,
    each that is not costs as many as it takes equal ones to make up for it."""
    equal = items[lag:] == items[:-lag]
    if equal.sum() < same * (LEAST_COVERED * len(items) - lag):
        return None
    gain = np.where(equal, 1.0, -same / (1 - same))
    total = np.append(0.0, np.cumsum(gain))
    lowest = np.minimum.accumulate(total)
    beyond = int((total - lowest).argmax())
    first = int(total[: beyond + 1].argmin())
    length, score = beyond - first, float(total[beyond] - total[first])
    exact = bool(equal[first:beyond].all())
    if length < (LEAST_REPEATS - 1) * lag and not (exact and length >= lag >= SHORTEST_TWICE):
        return None
    if length + lag < LEAST_COVERED * len(items) or equal[first:beyond].mean() < same:
        return None
    return score + lag, Period(first, beyond + lag, lag)
