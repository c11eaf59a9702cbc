"""Does memory grow from step to step? A trend test on the least memory in use in each step.

A leak raises the least, whatever a step allocates and frees in between. The test is Mann and Kendall's: how many pairs
of steps rise, against what chance would give. Equal steps count as falling, so that memory which grows and then
settles (caches, workspaces) is no leak. Few steps cannot tell: the test abstains.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from msgspec import Struct

from warpline.trace.arrays import Int64s
from warpline.units import several

WARM_UP_STEPS = 1
"""The first step allocates what stays: optimizer states, gradients, workspaces."""
CHANCE = 0.01
"""How seldom memory without a trend may be called growing."""
MIN_STEPS = 5
"""The fewest steps whose order can be this unlikely: one of 5! = 120 orders rises throughout."""
EXACT_STEPS = 60
"""Up to here the test counts orders; beyond, their distribution is normal."""
MAX_STEPS = 2_000
"""Of more steps, equally spaced ones are taken: the test looks at all pairs."""

Trend = Literal["growing", "steady", "unknown"]


class Growth(Struct, frozen=True):
    """Whether memory grows, and by how much."""

    trend: Trend
    reason: str
    steps: int
    """Steps that were tested, without the first."""
    per_step_bytes: float | None
    """Median growth over all pairs of steps (Theil and Sen); None without a test."""
    p_value: float | None
    """Probability of so many rising pairs without a trend."""


def growth(floors: Int64s) -> Growth:
    """The trend of the least memory in use in each step, in order."""
    tested = floors[WARM_UP_STEPS:]
    if len(tested) < MIN_STEPS:
        need = MIN_STEPS + WARM_UP_STEPS
        have = several(len(floors), "step") if len(floors) else "no steps"
        return Growth("unknown", f"the trace has {have}; the test needs {need}", len(tested), None, None)
    stride = -(-len(tested) // MAX_STEPS)
    chosen = tested[::stride]
    later, earlier = np.tril_indices(len(chosen), -1)
    change = chosen[later] - chosen[earlier]
    per_step = float(np.median(change / ((later - earlier) * stride)))
    rising = int((change > 0).sum())
    p_value = chance_of(rising, len(chosen))
    if p_value < CHANCE:
        reason = f"{rising:,} of {len(change):,} pairs of steps rise (p = {p_value:.2g})"
        return Growth("growing", reason, len(tested), per_step, p_value)
    reason = f"{rising:,} of {len(change):,} pairs of steps rise, which is no trend (p = {p_value:.2g})"
    return Growth("steady", reason, len(tested), per_step, p_value)


def chance_of(rising: int, steps: int) -> float:
    """The probability that at least so many pairs of so many values in random order rise."""
    pairs = steps * (steps - 1) // 2
    if steps <= EXACT_STEPS:
        counts = np.ones(1)
        for size in range(2, steps + 1):
            # The newest value is above 0 to size - 1 of those before it, each equally likely.
            counts = np.convolve(counts, np.full(size, 1 / size))
        return float(min(counts[max(rising, 0) :].sum(), 1.0))
    spread = math.sqrt(steps * (steps - 1) * (2 * steps + 5) / 72)
    return 0.5 * math.erfc((rising - 0.5 - pairs / 2) / (spread * math.sqrt(2)))
