"""The gate: whether runs are slower than their baseline, or exceed a budget."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from warpline.analyses.gaps import CAUSES
from warpline.compare.comparison import LEAST_EFFECT, Comparison, compare_measured
from warpline.compare.counts import KINDS
from warpline.compare.measured import Measured, median_run
from warpline.errors import EXIT_INCONCLUSIVE, EXIT_REGRESSION, UsageError
from warpline.estimate import Estimate

SCHEMA = "warpline.gate/1"
Outcome = Literal["passed", "regression", "inconclusive"]
EXIT_CODES: dict[Outcome, int] = {"passed": 0, "regression": EXIT_REGRESSION, "inconclusive": EXIT_INCONCLUSIVE}

NUMBERS = ("step_ms", "busy_ms", "idle_ms", "idle_pct", *(f"idle_{cause}_pct" for cause in CAUSES), *KINDS)
"""What a budget can limit, per step."""
_BUDGET = re.compile(r"\s*([a-z_]{1,40})\s*(<=|>=)\s*(\d{1,15}(?:\.\d{1,9})?)\s*")


@dataclass(frozen=True, slots=True)
class Budget:
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
        if number not in NUMBERS:
            raise UsageError("bad-budget", f"there is no number {number!r}", f"the numbers are {', '.join(NUMBERS)}")
        return cls(number, sign, float(limit))

    def allows(self, value: float) -> bool:
        """Whether the value keeps the limit."""
        return value <= self.limit if self.sign == "<=" else value >= self.limit


@dataclass(frozen=True, slots=True)
class Check:
    """One budget and what was measured."""

    budget: Budget
    value: float

    @property
    def passed(self) -> bool:
        """Whether the budget is kept."""
        return self.budget.allows(self.value)


@dataclass(frozen=True, slots=True)
class Gate:
    """The outcome, and what it rests on."""

    outcome: Outcome
    runs: tuple[Measured, ...]
    checks: tuple[Check, ...]
    comparison: Comparison | None
    """With the baseline; None without one."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "schema": SCHEMA,
            "outcome": self.outcome,
            "numbers": {name: round(value, 6) for name, value in numbers_of(median_run(self.runs)).items()},
            "budgets": [
                {
                    "number": check.budget.number,
                    "sign": check.budget.sign,
                    "limit": check.budget.limit,
                    "value": round(check.value, 6),
                    "passed": check.passed,
                }
                for check in self.checks
            ],
            "comparison": self.comparison.to_dict() if self.comparison else None,
        }


def numbers_of(run: Measured) -> dict[str, float]:
    """Every number that a budget can limit."""
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


def judge(
    runs: Sequence[Measured],
    baseline: Sequence[Measured] | None,
    budgets: Sequence[Budget],
    metric: Literal["step", "busy"] = "step",
    least_effect: float = LEAST_EFFECT,
) -> Gate:
    """Judge the runs. `metric` is what must not be slower than the baseline: the step, or the GPU's work alone."""
    if baseline is None and not budgets:
        raise UsageError("nothing-to-check", "the gate needs --baseline or --budget", "warpline gate --help")
    numbers = numbers_of(median_run(runs))
    checks = tuple(Check(budget, numbers[budget.number]) for budget in budgets)
    comparison = compare_measured(baseline, runs, least_effect) if baseline is not None else None
    outcome: Outcome = "passed"
    if comparison is not None:
        outcome = _outcome(comparison, metric, least_effect)
    if not all(check.passed for check in checks):
        outcome = "regression"
    return Gate(outcome, tuple(runs), checks, comparison)


def _outcome(comparison: Comparison, metric: Literal["step", "busy"], least_effect: float) -> Outcome:
    if comparison.verdict == "not_comparable":
        return "inconclusive"
    if metric == "busy":
        return _of_ratio(comparison.busy_ratio, least_effect)
    known: dict[str, Outcome] = {"slower": "regression", "faster": "passed", "same": "passed"}
    return known.get(comparison.verdict, "inconclusive")


def _of_ratio(ratio: Estimate, least_effect: float) -> Outcome:
    if ratio.low > 1 and ratio.expected >= 1 + least_effect:
        return "regression"
    return "passed" if ratio.high < 1 + least_effect or ratio.high < 1 else "inconclusive"
