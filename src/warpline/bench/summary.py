"""What some timings say: the median, an interval that holds it, the spread, the outliers. Nothing is assumed normal."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

CONFIDENCE = 0.95
OUTER_FENCE_IQRS = 3.0
"""Tukey's outer fence: beyond it, in quartile distances, a value is far out (Exploratory Data Analysis, 1977)."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Two order statistics with the median of what is measured between them."""

    low_ns: float
    high_ns: float
    confidence_pct: float
    """What the ranks give, at least 95 %."""

    def overlaps(self, other: Interval) -> bool:
        """Whether the two share a value."""
        return self.low_ns <= other.high_ns and other.low_ns <= self.high_ns


@dataclass(frozen=True, slots=True)
class Summary:
    """Some timings in a few numbers."""

    count: int
    median_ns: float
    interval: Interval | None
    """None below six timings: no interval of theirs holds the median with 95 % confidence."""
    min_ns: float
    q1_ns: float
    q3_ns: float
    max_ns: float
    outliers: int
    """Timings beyond Tukey's outer fences; they count in everything else."""

    @property
    def spread_pct(self) -> float:
        """The middle half's width in percent of the median."""
        return 100 * (self.q3_ns - self.q1_ns) / self.median_ns if self.median_ns else 0.0


@lru_cache(maxsize=256)
def median_ranks(count: int) -> tuple[int, int, float] | None:
    """Ranks, from 1, of the order statistics that hold the median, and their confidence; None where none do.

    The number of values below the median is binomial with p = 1/2 whatever the distribution, so the k-th smallest and
    the k-th largest hold it with probability 1 - 2 P(fewer than k below) (David and Nagaraja, Order Statistics, 7.1).
    """
    whole = 1 << count
    allowed = (1 - CONFIDENCE) / 2
    # Ways in which fewer than `rank` values lie below the median, and in which exactly `rank` do.
    below, ways, rank = 0, 1, 0
    while 2 * rank < count and (below + ways) / whole <= allowed:
        below += ways
        ways = ways * (count - rank) // (rank + 1)
        rank += 1
    if rank == 0:
        return None
    return rank, count + 1 - rank, 1 - 2 * below / whole


def interval_of_median(samples: Sequence[float]) -> Interval | None:
    """The narrowest symmetric pair of order statistics that holds the median with 95 % confidence."""
    ranks = median_ranks(len(samples))
    if ranks is None:
        return None
    ordered = sorted(samples)
    return Interval(ordered[ranks[0] - 1], ordered[ranks[1] - 1], 100 * ranks[2])


def summarise(samples: Sequence[float]) -> Summary:
    """The summary of at least one timing."""
    if not samples:
        raise ValueError("no samples")
    quartiles = statistics.quantiles(samples, n=4, method="inclusive") if len(samples) > 1 else [samples[0]] * 3
    fence = OUTER_FENCE_IQRS * (quartiles[2] - quartiles[0])
    return Summary(
        count=len(samples),
        median_ns=statistics.median(samples),
        interval=interval_of_median(samples),
        min_ns=min(samples),
        q1_ns=quartiles[0],
        q3_ns=quartiles[2],
        max_ns=max(samples),
        outliers=sum(not quartiles[0] - fence <= sample <= quartiles[2] + fence for sample in samples),
    )


MIN_DRIFT_SHARE = 0.01
"""A shift between the halves of a measurement that is worth a word."""


def drift(samples: Sequence[float]) -> tuple[float, float] | None:
    """Medians of the first and second half, where they differ by more than chance and by more than a percent."""
    middle = len(samples) // 2
    first, second = interval_of_median(samples[:middle]), interval_of_median(samples[middle:])
    if first is None or second is None or first.overlaps(second):
        return None
    before, after = statistics.median(samples[:middle]), statistics.median(samples[middle:])
    return (before, after) if abs(after - before) > MIN_DRIFT_SHARE * before else None
