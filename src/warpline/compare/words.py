"""Ratios in words."""

from __future__ import annotations

from warpline.estimate import Estimate
from warpline.units import speedup

MIN_MULTIPLE = 2.0
"""From this ratio on it is shown as a multiple."""


def percent(ratio: float) -> str:
    """A ratio as a change: 1.03 is +3.0 %."""
    return f"{100 * (ratio - 1):+.1f} %".replace("-", "−")


def in_words(ratio: Estimate) -> str:
    """A ratio with its interval: as a change in percent, or as a multiple where it is large."""
    if ratio.expected < MIN_MULTIPLE:
        return f"{percent(ratio.expected)} ({percent(ratio.low)} to {percent(ratio.high)})"
    return f"{speedup(ratio.expected)} as long ({speedup(ratio.low)} to {speedup(ratio.high)})"
