"""Medians and their intervals, worked out by hand and held as properties."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpline.bench.summary import Interval, drift, interval_of_median, median_ranks, summarise

TIMES = st.lists(st.floats(1, 1e9), min_size=1, max_size=200)


@pytest.mark.parametrize(
    ("count", "ranks", "confidence"),
    [
        # P(all six on one side) = 2 / 64.
        (6, (1, 6), 1 - 2 / 64),
        # 2 (1 + 9) / 512 = 0.039, and with the 36 pairs it would be 0.18.
        (9, (2, 8), 1 - 20 / 512),
        (10, (2, 9), 1 - 22 / 1024),
        # Conover, Practical Nonparametric Statistics, table A3: 20 and 25 values.
        (20, (6, 15), 0.9586),
        (25, (8, 18), 0.9567),
    ],
)
def test_ranks_that_hold_the_median(count: int, ranks: tuple[int, int], confidence: float) -> None:
    found = median_ranks(count)
    assert found is not None
    assert found[:2] == ranks
    assert found[2] == pytest.approx(confidence, abs=1e-4)


@pytest.mark.parametrize("count", range(6))
def test_fewer_than_six_values_have_no_interval(count: int) -> None:
    assert median_ranks(count) is None


@given(st.integers(6, 3000))
@settings(max_examples=25)
def test_the_ranks_are_symmetric_sure_enough_and_the_narrowest(count: int) -> None:
    found = median_ranks(count)
    assert found is not None
    low, high, confidence = found
    assert low + high == count + 1
    assert low < high
    assert confidence >= 0.95
    narrower = 1 - 2 * sum(math.comb(count, below) for below in range(low + 1)) / 2**count
    assert narrower < 0.95


def test_a_thousand_intervals_hold_the_true_median_as_often_as_they_say() -> None:
    generator = random.Random(5)
    held = 0
    for _ in range(1000):
        interval = interval_of_median([generator.lognormvariate(0, 2) for _ in range(25)])
        assert interval is not None
        held += interval.low_ns <= 1.0 <= interval.high_ns
    assert 935 <= held <= 980


@given(TIMES)
def test_a_summary_is_ordered(samples: list[float]) -> None:
    summary = summarise(samples)
    ends = [summary.min_ns, summary.q1_ns, summary.median_ns, summary.q3_ns, summary.max_ns]
    assert all(one <= other * (1 + 1e-12) for one, other in itertools.pairwise(ends))
    if summary.interval is not None:
        assert (
            summary.min_ns <= summary.interval.low_ns <= summary.median_ns <= summary.interval.high_ns <= summary.max_ns
        )


@given(TIMES, st.floats(0.1, 100))
def test_a_slower_clock_scales_everything(samples: list[float], factor: float) -> None:
    one, other = summarise(samples), summarise([sample * factor for sample in samples])
    assert other.median_ns == pytest.approx(one.median_ns * factor)
    assert (one.interval is None) == (other.interval is None)


def test_outliers_are_counted_and_kept() -> None:
    samples = [10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 1000.0]
    summary = summarise(samples)
    # Quartiles 11.75 and 15.25, so the outer fence is at 15.25 + 3 * 3.5 = 25.75.
    assert (summary.outliers, summary.max_ns, summary.median_ns) == (1, 1000.0, 13.5)
    assert summary.spread_pct == pytest.approx(100 * 3.5 / 13.5)


def test_no_samples_are_no_summary() -> None:
    with pytest.raises(ValueError, match="no samples"):
        summarise([])


def test_drift_is_a_shift_of_the_halves_beyond_chance_and_a_percent() -> None:
    steady = [100.0 + place % 5 for place in range(40)]
    assert drift(steady) is None
    assert drift([100.0] * 20 + [100.5] * 20) is None
    assert drift([100.0] * 20 + [110.0] * 20) == (100.0, 110.0)
    assert drift([100.0, 200.0]) is None


def test_intervals_overlap_when_they_share_a_value() -> None:
    assert Interval(1, 2, 95).overlaps(Interval(2, 3, 95))
    assert not Interval(1, 2, 95).overlaps(Interval(2.1, 3, 95))
