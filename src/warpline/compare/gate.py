"""The gate: whether runs are slower than their baseline, or exceed a budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct, to_builtins

from warpline.compare.budgets import Budget, BudgetCheck, numbers_of
from warpline.compare.comparison import LEAST_EFFECT, Comparison, compare_measurements
from warpline.compare.measurement import RunMeasurement, median_run
from warpline.compare.spread import verdict_of
from warpline.errors import EXIT_FAILED, EXIT_INCONCLUSIVE, EXIT_REGRESSION, UsageError
from warpline.estimate import Estimate

SCHEMA = "warpline.gate/1"
GateOutcome = Literal["passed", "regression", "budget_exceeded", "inconclusive", "not_comparable"]
EXIT_CODES: dict[GateOutcome, int] = {
    "passed": 0,
    "regression": EXIT_REGRESSION,
    "budget_exceeded": EXIT_REGRESSION,
    "inconclusive": EXIT_INCONCLUSIVE,
    "not_comparable": EXIT_FAILED,
}
"""A recording of another program is a failure: noise may pass a job of CI, and nothing was checked."""


class Gate(Struct, frozen=True):
    """The outcome, and what it rests on."""

    outcome: GateOutcome
    runs: tuple[RunMeasurement, ...]
    checks: tuple[BudgetCheck, ...]
    comparison: Comparison | None
    """With the baseline; None without one."""
    baseline_outcome: GateOutcome = "passed"
    """Of the comparison alone."""

    @property
    def failed(self) -> bool:
        """Whether the runs are slower, or exceed a budget."""
        return EXIT_CODES[self.outcome] == EXIT_REGRESSION

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "schema": SCHEMA,
            "outcome": self.outcome,
            "numbers": {name: round(value, 6) for name, value in numbers_of(median_run(self.runs)).items()},
            "budgets": [
                {**to_builtins(check.budget), "value": round(check.value, 6), "passed": check.passed}
                for check in self.checks
            ],
            "comparison": self.comparison.to_dict() if self.comparison else None,
        }


def judge(
    runs: Sequence[RunMeasurement],
    baseline: Sequence[RunMeasurement] | None,
    budgets: Sequence[Budget],
    metric: Literal["step", "busy"] = "step",
    least_effect: float = LEAST_EFFECT,
    more: Mapping[str, float] | None = None,
    *,
    anyway: bool = False,
) -> Gate:
    """Judge the runs. `metric` is what must not be slower than the baseline: the step, or the GPU's work alone; `more`
    are the numbers that budgets ask for and that a measured run does not have; `anyway` compares with the baseline of
    another device or program."""
    if baseline is None and not budgets:
        raise UsageError("nothing-to-check", "the gate needs --baseline or --budget", "warpline gate --help")
    numbers = {**numbers_of(median_run(runs)), **(more or {})}
    checks = tuple(BudgetCheck(budget, numbers[budget.number]) for budget in budgets)
    comparison = compare_measurements(baseline, runs, least_effect, anyway=anyway) if baseline is not None else None
    by_baseline = _outcome(comparison, metric, least_effect) if comparison is not None else "passed"
    is_within_budget = all(check.passed for check in checks) or by_baseline == "regression"
    outcome: GateOutcome = by_baseline if is_within_budget else "budget_exceeded"
    return Gate(outcome, tuple(runs), checks, comparison, by_baseline)


def _outcome(comparison: Comparison, metric: Literal["step", "busy"], least_effect: float) -> GateOutcome:
    if comparison.verdict == "not_comparable":
        return "not_comparable"
    if metric == "busy":
        return _of_ratio(comparison.work_ratio, least_effect)
    if comparison.judged_by == "work" and comparison.verdict == "faster" and comparison.ratio.expected > 1:
        return "inconclusive"  # Less GPU work in a longer step: kernels may be missing from the recording.
    known: dict[str, GateOutcome] = {"slower": "regression", "faster": "passed", "same": "passed"}
    return known.get(comparison.verdict, "inconclusive")


def _of_ratio(ratio: Estimate, least_effect: float) -> GateOutcome:
    if verdict_of(ratio, least_effect) == "slower":
        return "regression"
    return "passed" if ratio.high < 1 + least_effect else "inconclusive"
