"""The gate: whether runs are slower than their baseline, or exceed a budget."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, to_builtins

from warpline.compare.asked_numbers import asked_numbers
from warpline.compare.budgets import Budget, BudgetCheck
from warpline.compare.comparison import Comparison, Metric, compare_measurements
from warpline.compare.measurement import RunMeasurement, measure_sound, median_run
from warpline.compare.step_numbers import Numbers, number_in, step_numbers
from warpline.errors import EXIT_FAILED, EXIT_INCONCLUSIVE, EXIT_REGRESSION, UsageError
from warpline.estimate import LEAST_EFFECT
from warpline.findings.diagnosis import diagnose
from warpline.trace.trace import Trace

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
    files: tuple[str, ...]
    """What was checked."""
    runs: tuple[RunMeasurement, ...]
    """Empty for a report of Nsight Compute."""
    numbers: Numbers
    """Of the median run."""
    checks: tuple[BudgetCheck, ...]
    comparison: Comparison | None
    """With the baseline; None without one."""
    baseline_outcome: GateOutcome = "passed"
    """Of the comparison alone."""
    notes: tuple[str, ...] = ()
    """What was not checked, and why."""

    @property
    def failed(self) -> bool:
        """Whether the runs are slower, or exceed a budget."""
        return EXIT_CODES[self.outcome] == EXIT_REGRESSION

    @property
    def hidden_steps(self) -> BudgetCheck | None:
        """A limit of the step that the typical step keeps, and the mean of all steps does not."""
        for check in self.checks:
            if check.passed and check.budget.sign == "<=" and check.budget.number in {"step_ms", "recorded_step_ms"}:
                longer = self.numbers["mean_step_ms"].expected / max(self.numbers["recorded_step_ms"].expected, 1e-6)
                if not check.budget.allows(longer * check.value.expected):
                    return check
        return None

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "schema": SCHEMA,
            "outcome": self.outcome,
            "numbers": {name: round(value.expected, 6) for name, value in self.numbers.items()},
            "budgets": [
                {
                    **to_builtins(check.budget),
                    "value": round(check.value.expected, 6),
                    "low": round(check.value.low, 6),
                    "high": round(check.value.high, 6),
                    "passed": check.passed,
                    "baseline": check.baseline,
                }
                for check in self.checks
            ],
            "notes": list(self.notes),
            "comparison": self.comparison.to_dict() if self.comparison else None,
        }


class GateLimits(Struct, frozen=True):
    """What the runs are held to."""

    baseline: Sequence[RunMeasurement] | None = None
    budgets: Sequence[Budget] = ()
    metric: Metric = "step"
    """What must not be slower than the baseline: the step, or the GPU's work alone."""
    least_effect: float = LEAST_EFFECT
    anyway: bool = False
    """Whether to compare with the baseline of another device or program."""


def check(traces: Sequence[Trace], limits: GateLimits, ncu_reports: Sequence[Path] = ()) -> Gate:
    """Diagnose and measure recordings, and judge them."""
    answers = [diagnose(trace) for trace in traces]
    runs = [measure_sound(found) for found in answers]
    median = median_run(runs)
    found = next(found for found, run in zip(answers, runs, strict=True) if run is median)
    numbers = {
        **step_numbers(found, median.counts, median.step.lengths_ns),
        **asked_numbers(limits.budgets, found.trace, ncu_reports),
    }
    return judge(runs, limits, numbers)


def judge(runs: Sequence[RunMeasurement], limits: GateLimits, numbers: Numbers | None = None) -> Gate:
    """Judge runs that were measured before; `numbers` are those of the median one, for budgets."""
    baseline, least_effect = limits.baseline, limits.least_effect
    if baseline is None and not limits.budgets:
        raise UsageError("nothing-to-check", "the gate needs --baseline or --budget", "warpline gate --help")
    numbers = numbers or {}
    checks = tuple(BudgetCheck(budget, number_in(numbers, budget.number)) for budget in limits.budgets)
    comparison = (
        compare_measurements(baseline, runs, least_effect, anyway=limits.anyway, metric=limits.metric)
        if baseline is not None
        else None
    )
    by_baseline = _outcome(comparison, least_effect) if comparison is not None else "passed"
    outcome = by_baseline
    if by_baseline != "regression" and any(one.passed is False for one in checks):
        outcome = "budget_exceeded"
    elif by_baseline == "passed" and any(one.passed is None for one in checks):
        outcome = "inconclusive"
    return Gate(outcome, tuple(run.file for run in runs), tuple(runs), numbers, checks, comparison, by_baseline)


def _outcome(comparison: Comparison, least_effect: float) -> GateOutcome:
    if comparison.verdict == "not_comparable":
        return "not_comparable"
    is_shorter = comparison.ratio.expected < 1 - least_effect
    if comparison.judged_by == "work" and comparison.verdict == "faster" and not is_shorter:
        # Less GPU work, and a step that is no shorter: kernels may be missing from the recording.
        return "inconclusive"
    if comparison.judged_by == "busy" and comparison.verdict == "inconclusive":
        return "passed" if comparison.work_ratio.high < 1 + least_effect else "inconclusive"
    known: dict[str, GateOutcome] = {"slower": "regression", "faster": "passed", "same": "passed"}
    return known.get(comparison.verdict, "inconclusive")
