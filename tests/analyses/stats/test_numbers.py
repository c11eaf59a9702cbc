"""Rounding as nsys rounds."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as some

from warpline.analyses.stats.numbers import bytes_per_second, round_half_away, rounded


@pytest.mark.parametrize(
    ("value", "digits", "expected"),
    [
        (1530.25, 1, 1530.3),  # a true tie goes up, where printf would print 1530.2
        (0.15, 1, 0.1),  # 0.1499999999999999944…: below the tie in binary
        (1081.35, 1, 1081.3),  # 1081.3499999999999090…
        (1081.15, 1, 1081.2),  # 1081.1500000000000909…
        (-0.25, 1, -0.3),
        (0.0625, 3, 0.063),
        (0.0, 1, 0.0),
    ],
)
def test_ties_go_away_from_zero_on_the_binary_value(value: float, digits: int, expected: float) -> None:
    assert round_half_away(np.array([value]), digits).tolist() == [expected]


@given(some.integers(0, 10**15), some.integers(1, 10**4), some.sampled_from([1, 3]))
def test_rounding_is_that_of_exact_decimal_arithmetic(total: int, count: int, digits: int) -> None:
    value = total / count
    exact = Decimal(value).quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP)
    assert f"{round_half_away(np.array([value]), digits)[0]:.{digits}f}" == str(exact)


def test_missing_values_stay_missing() -> None:
    frame = pl.DataFrame({"value": [1.25, None]})
    assert frame.select(rounded(pl.col("value"))).to_series().to_list() == [1.3, None]


def test_throughput_loses_what_nsys_loses() -> None:
    frame = pl.DataFrame({"bytes": [1_044_480, 1], "duration_ns": [20_224, 0]})
    assert frame.select(bytes_per_second()).to_series().to_list() == [51_645_358_080, None]
