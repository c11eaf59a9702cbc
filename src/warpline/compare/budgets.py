"""Budgets: limits on the numbers of a step."""

from __future__ import annotations

import re

from msgspec import Struct

from warpline.compare.step_numbers import ASKED_NUMBERS, NUMBERS
from warpline.errors import UsageError, meant
from warpline.estimate import Estimate

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
        known = (*NUMBERS, *ASKED_NUMBERS, f"{COUNTER}KERNEL:METRIC")
        if number not in known and not number.startswith(COUNTER):
            raise UsageError("bad-budget", f"there is no number {number!r}", meant(number, known))
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
    value: Estimate
    baseline: float | None = None
    """The number that the limit is made from; None for a limit that was asked for."""

    @property
    def passed(self) -> bool | None:
        """Whether the budget is kept; None if the limit lies within the range of the number."""
        ends = {self.budget.allows(self.value.low), self.budget.allows(self.value.high)}
        return ends.pop() if len(ends) == 1 else None
