"""The gate of a report of Nsight Compute: whether its kernels take longer than in an older report, or do more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from warpline.compare.asked_numbers import counter_numbers
from warpline.compare.budgets import COUNTER, Budget, BudgetCheck
from warpline.compare.gate import Gate, GateOutcome
from warpline.compare.step_numbers import number_in
from warpline.dive.compare import QUANTITIES, align
from warpline.dive.kernel_metrics import KernelMetrics
from warpline.errors import CannotAnswer, UsageError
from warpline.estimate import Estimate
from warpline.sources.ncu.model import KernelReport, NcuReport
from warpline.units import several

MAX_WORSE = 0.05
"""More than this share above the baseline is a regression. Equal launches of one report on an H200 differ by 0.2 % in
their time and by 1.6 % in their DRAM and L2 traffic."""
AMOUNTS = ("instructions", "dram", "l2", "l1", "shared", "local", "atomics")
"""What a kernel does: more of it costs time, energy or bandwidth. Shares, such as occupancy, may fall in a faster
kernel."""
MAX_NAMED = 3
"""Kernels that a message names."""


def check_report(
    report: NcuReport, baseline: NcuReport | None, budgets: Sequence[Budget] = (), *, anyway: bool = False
) -> Gate:
    """Judge a report by an older one, by budgets of counters, or by both."""
    if baseline is None and not budgets:
        raise UsageError("nothing-to-check", "the gate needs --baseline or --budget", "warpline gate --help")
    for budget in budgets:
        if not budget.number.startswith(COUNTER):
            what = f"{budget.number} is a number of a recording, and {report.path.name} is a report of Nsight Compute"
            raise UsageError("no-timeline", what, f"limit {COUNTER}KERNEL:METRIC, or give the recording")
    numbers = counter_numbers(budgets, report.kernels)
    checks = [BudgetCheck(budget, number_in(numbers, budget.number)) for budget in budgets]
    outcome: GateOutcome = "passed" if all(check.passed for check in checks) else "budget_exceeded"
    notes: tuple[str, ...] = ()
    if baseline is not None:
        against, notes = _against(baseline, report, anyway)
        checks += against
        outcome = outcome if all(check.passed for check in against) else "regression"
    return Gate(outcome, (report.path.name,), (), numbers, tuple(checks), None, notes=notes)


def _against(baseline: NcuReport, report: NcuReport, anyway: bool) -> tuple[list[BudgetCheck], tuple[str, ...]]:
    """The time and the work of every kernel of the baseline, and what a reader should know of them."""
    devices = [{kernel.device or kernel.chip for kernel in one.kernels} for one in (baseline, report)]
    if devices[0] != devices[1] and not anyway:
        what = f"the baseline is of {_listed(devices[0])}, and the report of {_listed(devices[1])}"
        raise CannotAnswer("other-device", what, "--anyway compares them")
    found = align(baseline.kernels, report.kernels)
    if gone := found.only_a:
        what = f"{report.path.name} lacks {several(len(gone), 'launch', 'launches')} of the baseline"
        named = _listed(kernel.function for kernel in gone)
        raise CannotAnswer("other-kernels", f"{what}: {named}", "profile the same launches, or name a newer baseline")
    checks = [check for before, after in found.pairs for check in _of_kernel(before, after)]
    if not checks:
        raise CannotAnswer("no-counters", "the two reports have no counter in common", "profile with ncu --set full")
    notes = []
    if new := found.only_b:
        notes.append(f"Not in the baseline, so not checked: {_listed(kernel.function for kernel in new)}.")
    if apart := [after.function for before, after in found.pairs if not _is_same_clock(before, after)]:
        notes.append(
            f"Times not checked, because the SM clock differs by more than {100 * MAX_WORSE:g} %: {_listed(apart)}."
        )
    return checks, tuple(notes)


def _of_kernel(before: KernelReport, after: KernelReport) -> Iterator[BudgetCheck]:
    """The time, and unless that is shorter, what the kernel does."""
    old, new = KernelMetrics(before), KernelMetrics(after)
    name = f"{after.function} ({after.launch})"
    if old.duration_ns and new.duration_ns and _is_same_clock(before, after):
        yield _check(f"{name}: µs", old.duration_ns / 1e3, new.duration_ns / 1e3)
        if new.duration_ns < old.duration_ns * (1 - MAX_WORSE):
            return
    for amount in AMOUNTS:
        quantity = QUANTITIES[amount]
        was, now = quantity.value(old), quantity.value(new)
        if was is not None and now is not None and (was or now):
            yield _check(f"{name}: {quantity.words}", was, now)


def _is_same_clock(before: KernelReport, after: KernelReport) -> bool:
    was, now = (KernelMetrics(one).get("sm_clock") for one in (before, after))
    return not was or not now or abs(now / was - 1) <= MAX_WORSE


def _check(number: str, was: float, now: float) -> BudgetCheck:
    return BudgetCheck(Budget(number, "<=", was * (1 + MAX_WORSE)), Estimate.exactly(now), was)


def _listed(names: Iterable[str]) -> str:
    known = list(dict.fromkeys(names))
    more = f" and {len(known) - MAX_NAMED} more" if len(known) > MAX_NAMED else ""
    return ", ".join(known[:MAX_NAMED]) + more
