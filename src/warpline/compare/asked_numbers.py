"""Numbers that a gate computes only if a budget limits them: memory, the roofline, and counters of Nsight Compute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path

from warpline.analyses.roofline.table import roofline_table
from warpline.compare.budgets import COUNTER, Budget
from warpline.compare.step_numbers import ASKED_NUMBERS
from warpline.errors import CannotAnswer, UsageError
from warpline.estimate import Estimate
from warpline.replay.representative_steps import in_warm_steps
from warpline.sources.ncu import read_report
from warpline.sources.ncu.model import KernelReport
from warpline.trace.arrays import NONE
from warpline.trace.table import filled
from warpline.trace.trace import Trace

CPU = 0
"""Number of the CPU among torch's device types."""
MAX_LISTED_KERNELS = 5
"""Kernels that an error lists."""


def asked_numbers(budgets: Sequence[Budget], trace: Trace, reports: Sequence[Path]) -> dict[str, Estimate]:
    """The value of every such number, of this trace and of these reports."""
    found = {budget.number: _COMPUTED[budget.number](trace) for budget in budgets if budget.number in ASKED_NUMBERS}
    counters = [budget for budget in budgets if budget.number.startswith(COUNTER)]
    if counters and not reports:
        raise UsageError(
            "needs-report", f"{counters[0].number} needs a report of Nsight Compute", "give it with --ncu REPORT"
        )
    kernels = [kernel for path in reports if counters for kernel in read_report(path).kernels]
    return {**_exact(found), **counter_numbers(counters, kernels)}


def counter_numbers(budgets: Sequence[Budget], kernels: Sequence[KernelReport]) -> dict[str, Estimate]:
    """The value of every counter that a budget limits, of these kernels."""
    return _exact({budget.number: counter(budget, kernels) for budget in budgets})


def _exact(numbers: dict[str, float]) -> dict[str, Estimate]:
    return {name: Estimate.exactly(value) for name, value in numbers.items()}


def counter(budget: Budget, kernels: Sequence[KernelReport]) -> float:
    """The metric of the launches whose name contains the budget's words: the one that is farthest from the limit."""
    name, _, metric = budget.number.removeprefix(COUNTER).rpartition(":")
    named = [kernel for kernel in kernels if name in kernel.name or name in kernel.function]
    if not named:
        listed = ", ".join(list(dict.fromkeys(kernel.function for kernel in kernels))[:MAX_LISTED_KERNELS])
        raise UsageError("no-kernel", f"no kernel of the report has {name!r} in its name", f"it has {listed or 'none'}")
    values = [value for value in (kernel.number(metric) for kernel in named) if value is not None]
    if not values:
        near = get_close_matches(metric, {known for kernel in named for known in kernel.metrics}, 3)
        raise UsageError(
            "no-metric", f"the report has no {metric} of {name!r}", f"similar: {', '.join(near) or 'none'}"
        )
    return max(values) if budget.sign == "<=" else min(values)


def _peak(column: str) -> Callable[[Trace], float]:
    def peak(trace: Trace) -> float:
        memory = trace.memory
        totals = memory.column(column)[filled(memory.device_type, CPU) != CPU]
        if not (totals != NONE).any():
            hint = "record with warpline run --memory, or with profile_memory=True"
            raise CannotAnswer("no-memory", f"{trace.file.name} has no record of GPU memory", hint)
        return float(totals.max()) / 1e6

    return peak


def _roof_pct(trace: Trace) -> float:
    table = roofline_table(in_warm_steps(trace))
    if table.roof is None or not table.modelled_ns:
        raise CannotAnswer("no-roof", f"the roofline of {trace.file.name} is unknown", "warpline roofline says why")
    return 100 * table.floor_ns / table.modelled_ns


_COMPUTED: dict[str, Callable[[Trace], float]] = {
    "peak_memory_mb": _peak("allocated_bytes"),
    "peak_reserved_mb": _peak("reserved_bytes"),
    "roof_pct": _roof_pct,
}
