"""Ranges learn from this user's own timed outcomes, from eight on, and from nothing else."""

from __future__ import annotations

import math

import pytest

from warpline.replay.own_errors import FEWEST, OwnError, own_errors
from warpline.replay.ranges import HalfWidth
from warpline.sources.local_record import append
from warpline.sources.record_files import outcomes_file

INSERT = (
    "insert into outcomes (at, a, b, fix, predicted_low, predicted, predicted_high, spread, measured, timed)"
    " values ('', ?, '', ?, 1, ?, 3, ?, ?, ?)"
)
LAW = HalfWidth(others=0.1, by_fix={"tf32": 0.2}, spread_power=0.0, gain_power=0.0)


def test_only_timed_outcomes_count() -> None:
    assert own_errors() == {}
    append(outcomes_file(), INSERT, ("1", "tf32", 2.0, 1.5, 4.0, 1))
    append(outcomes_file(), INSERT, ("2", "tf32", 2.0, 1.5, 4.0, 0))
    append(outcomes_file(), INSERT, ("3", "tf32", -2.0, 1.5, 4.0, 1))
    append(outcomes_file(), INSERT, ("4", "tf32", 1e-300, 1.5, 1e300, 1))
    (found,) = own_errors()["tf32"]
    assert found == OwnError(pytest.approx(math.log(2)), 1.5, 2.0)  # type: ignore[arg-type]


def test_a_damaged_record_is_none() -> None:
    outcomes_file().write_bytes(b"no database" * 1000)
    assert own_errors() == {}


def test_the_constant_moves_towards_ones_own_errors() -> None:
    # The 80 % quantile of nine equal errors of 0.5 is 0.5: (8 * 0.2 + 9 * 0.5) / 17.
    nine = [OwnError(0.5, 1.0, 1.0)] * (FEWEST + 1)
    assert LAW.of(["tf32"], 1.0, 1.0, {"tf32": nine}) == pytest.approx(6.1 / 17)
    assert LAW.of(["tf32"], 1.0, 1.0, {"tf32": nine[: FEWEST - 1]}) == 0.2
    assert LAW.of(["bf16"], 1.0, 1.0, {"tf32": nine}) == 0.1


def test_an_error_counts_by_the_width_that_its_range_had() -> None:
    law = HalfWidth(others=0.1, by_fix={}, spread_power=1.0, gain_power=0.0)
    many = [OwnError(0.4, 2.0, 1.0)] * 8
    # Each is 0.4 where the range is twice as wide: 0.2, and with the weight of eight beside 0.1 it is 0.15.
    assert law.of(["x"], 1.0, 1.0, {"x": many}) == pytest.approx(0.15)
