"""What a finding costs a day, at the price of a GPU hour.

The assumption: the recorded loop runs all day on one GPU, as fast as its step is without a profiler. A fix then does
the same number of steps in less time, and saves that share of the day's price.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from warpline.estimate import Estimate
from warpline.findings.model import Finding
from warpline.findings.plan import PlanStep

HOURS_PER_DAY = 24
ASSUMPTION = "if the recorded loop runs all day on one GPU"


LEAST_GAIN = 1e-4
"""Gains have four decimals, so that a smaller one is written as zero."""


class DailyCost(Struct, frozen=True):
    """The price of a day, and what each fix saves of it, in the currency of the price."""

    gpu_hour: float

    @property
    def per_day(self) -> float:
        """Price of one GPU for a day."""
        return HOURS_PER_DAY * self.gpu_hour

    def saved(self, gain: Estimate) -> Estimate:
        """What a speed-up saves a day; negative where the range does not exclude that it is slower."""
        gains = (max(value, LEAST_GAIN) for value in (gain.low, gain.expected, gain.high))
        return Estimate(*(self.per_day * (1 - 1 / value) for value in gains))

    def to_dict(self, findings: list[Finding], plan: list[PlanStep]) -> dict[str, Any]:
        """As `cost` of the diagnosis' JSON."""
        return {
            "gpu_hour": self.gpu_hour,
            "per_day": round(self.per_day, 4),
            "assumption": ASSUMPTION,
            "saved_per_day": {finding.fix: self.saved(finding.gain).rounded(4).to_dict() for finding in findings},
            "plan_saves_per_day": self.saved(plan[-1].gain).rounded(4).to_dict() if plan else None,
        }
