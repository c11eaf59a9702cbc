"""Confidence in a finding: `high` where 90 % of such predictions were right, `low` where it must be measured.

A prediction is right if the step is within 25 % of the stopwatch's. The shares were counted on suites that the version
had not seen, with ranges that were made without them (`python -m faults.ranges`).
"""

from __future__ import annotations

from typing import Literal

from warpline.estimate import CLEAR_GAIN
from warpline.fixes.claim import Confidence
from warpline.fixes.model import Rule
from warpline.replay.ranges import is_narrow
from warpline.replay.whatif import Prediction

LARGEST_REPLAY_ERROR_PCT = 4.0
"""A larger replay error lowers the confidence of every prediction."""
FEWEST_STEPS = 2
LEVELS: tuple[Literal["low"], Literal["medium"], Literal["high"]] = ("low", "medium", "high")


def at_most(confidence: Confidence, bound: Confidence) -> Confidence:
    """The lower of the two."""
    return LEVELS[min(LEVELS.index(confidence), LEVELS.index(bound))]


def confidence_of(rule: Rule, prediction: Prediction, recorded_steps: int) -> Confidence:
    """The confidence that the replay, the range and the rule's evidence allow."""
    level = LEVELS.index("high")
    if (
        prediction.error_pct > LARGEST_REPLAY_ERROR_PCT
        or recorded_steps < FEWEST_STEPS
        or prediction.gain.expected < CLEAR_GAIN
        or prediction.gain.is_wide
    ):
        level = LEVELS.index("low")
    elif prediction.gain.low <= 1.0 or not is_narrow(prediction.new_step_ns):
        level = LEVELS.index("medium")
    return LEVELS[min(level, LEVELS.index(rule.most))]
