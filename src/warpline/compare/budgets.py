"""Budgets: limits on the numbers of a step."""

from __future__ import annotations

import re

from msgspec import Struct

from warpline.analyses.idle.gaps import CAUSES
from warpline.compare.counts import KINDS
from warpline.compare.measurement import RunMeasurement
from warpline.errors import UsageError

NUMBERS = ("step_ms", "busy_ms", "idle_ms", "idle_pct", *(f"idle_{cause}_pct" for cause in CAUSES), *KINDS)
"""What is known of every run, per step."""
ASKED_NUMBERS = ("peak_memory_mb", "peak_reserved_mb", "roof_pct")
"""What is computed only for a budget that limits it."""
COUNTER = "ncu:"
"""Prefix of a metric of Nsight Compute: `ncu:KERNEL:METRIC`."""
_BUDGET = re.compile(
    r"\s*([a-z_]{1,40}|ncu:[^<>=]{1,300}:[A-Za-z0-9_.]{1,200})\s*(<=|>=)\s*(\d{1,15}(?:\.\d{1,9})?)\s*"
)


class Budget(Struct, frozen=True):
    """A limit of one number."""

    number: str
    sign: str
    """`<=` or `>=`."""
    limit: float

    @classmethod
    def parse(cls, text: str) -> Budget:
        """Read `step_ms<=12`."""
        match = _BUDGET.fullmatch(text)
        if not match:
            raise UsageError("bad-budget", f"{text!r} is no budget", "write NUMBER<=LIMIT, for example step_ms<=12")
        number, sign, limit = match.groups()
        known = (*NUMBERS, *ASKED_NUMBERS)
        if number not in known and not number.startswith(COUNTER):
            listed = f"the numbers are {', '.join(known)} and {COUNTER}KERNEL:METRIC"
            raise UsageError("bad-budget", f"there is no number {number!r}", listed)
        return cls(number, sign, float(limit))

    def allows(self, value: float) -> bool:
        """Whether the value keeps the limit."""
        return value <= self.limit if self.sign == "<=" else value >= self.limit


def is_budget(text: str) -> bool:
    """Whether a word has the form of a budget, whatever number it names."""
    return bool(_BUDGET.fullmatch(text))


class BudgetCheck(Struct, frozen=True):
    """One budget and what was measured."""

    budget: Budget
    value: float

    @property
    def passed(self) -> bool:
        """Whether the budget is kept."""
        return self.budget.allows(self.value)


def numbers_of(run: RunMeasurement) -> dict[str, float]:
    """Every number that is known of a run."""
    step = run.step
    whole = max(step.step_ns, 1.0)
    return {
        "step_ms": step.step_ns / 1e6,
        "busy_ms": float(step.exposed_ns.sum()) / 1e6,
        "idle_ms": run.idle_ns / 1e6,
        "idle_pct": 100 * run.idle_ns / whole,
        **{f"idle_{cause}_pct": 100 * step.idle_ns[cause] / whole for cause in CAUSES},
        **run.counts,
    }
