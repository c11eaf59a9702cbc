"""Confidence in a finding: `high` where 90 % of such predictions were right, `low` where it must be measured.

A prediction is right if the step is within 25 % of the stopwatch's. The shares were counted on suites that the version
had not seen, with ranges that were made without them (`python -m faults.ranges`).
"""

from __future__ import annotations

from typing import get_args

from warpline.estimate import CLEAR_GAIN
from warpline.fixes.claim import Confidence
from warpline.replay.ranges import is_narrow
from warpline.replay.whatif import Prediction

LARGEST_REPLAY_ERROR_PCT = 4.0
"""A larger replay error lowers the confidence of every prediction."""
FEWEST_STEPS = 2
LEVELS: tuple[Confidence, ...] = get_args(Confidence)
"""The highest first."""


def least(*levels: Confidence) -> Confidence:
    """The lowest of several."""
    return max(levels, key=LEVELS.index)


def one_less(level: Confidence) -> Confidence:
    """The next lower one, if there is one."""
    return LEVELS[min(LEVELS.index(level) + 1, len(LEVELS) - 1)]


def confidence_of(prediction: Prediction, recorded_steps: int) -> Confidence:
    """The confidence that the replay and the range allow."""
    gain = prediction.gain
    if prediction.error_pct > LARGEST_REPLAY_ERROR_PCT or recorded_steps < FEWEST_STEPS:
        return "low"
    if gain.expected < CLEAR_GAIN or gain.is_wide:
        return "low"
    return "high" if gain.low > 1.0 and is_narrow(prediction.new_step_ns) else "medium"
