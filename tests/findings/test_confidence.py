"""Confidence by the width of the range, and what else lowers it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from warpline.estimate import Estimate
from warpline.findings.confidence import confidence_of, least, one_less
from warpline.findings.model import how_to_measure
from warpline.replay.whatif import Prediction

STEPS = 4


def prediction(low: float = 0.8, high: float = 1.25, gain: float = 2.0, least_gain: float = 1.6) -> Prediction:
    """A step of 2 ms that becomes 1 ms, within `low` and `high` times that."""
    return Prediction(
        fixes=(),
        measured_step_ns=2e6,
        replayed_step_ns=2e6,
        error_pct=0.1,
        old_step_ns=Estimate(1.9e6, 2e6, 2.2e6),
        new_step_ns=Estimate(low * 1e6, 1e6, high * 1e6),
        gain=Estimate(least_gain, gain, 2 * gain),
        replayed_ns=Estimate(0.9e6, 1e6, 1.1e6),
        steps=STEPS,
    )


def test_a_narrow_range_that_excludes_no_gain_is_high() -> None:
    assert confidence_of(prediction(), STEPS) == "high"


@pytest.mark.parametrize("doubtful", [prediction(high=1.4), replace(prediction(), gain=Estimate(0.98, 2.0, 2.9))])
def test_a_wider_range_or_one_that_holds_no_gain_is_medium(doubtful: Prediction) -> None:
    assert confidence_of(doubtful, STEPS) == "medium"


def test_a_gain_that_must_be_measured_is_low() -> None:
    # The range of the gain reaches to 4: from 1.3 it is wider than a factor of 3, from 1.4 it is not.
    assert confidence_of(prediction(high=1.4, least_gain=1.3), STEPS) == "low"
    assert confidence_of(prediction(high=1.4, least_gain=1.4), STEPS) == "medium"


def test_a_small_gain_a_wrong_replay_or_a_single_step_is_low() -> None:
    assert confidence_of(prediction(gain=1.04), STEPS) == "low"
    assert confidence_of(replace(prediction(), error_pct=5.0), STEPS) == "low"
    assert confidence_of(prediction(), 1) == "low"


def test_the_lowest_of_several_counts_and_one_less_than_low_is_low() -> None:
    assert least("high", "medium", "high") == "medium"
    assert [one_less(level) for level in ("high", "medium", "low")] == ["medium", "low", "low"]


def test_what_can_be_tried_from_outside_is_measured_so() -> None:
    assert how_to_measure("tf32", "sdpa").startswith("`warpline try --fix tf32 --fix sdpa -- PROGRAM`, or record ")
    assert how_to_measure("tf32", "batch") == how_to_measure("batch")
    assert "try" not in how_to_measure("batch")
