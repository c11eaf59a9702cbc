"""The comparison of two reports of Nsight Compute as sections."""

from __future__ import annotations

from collections.abc import Iterator

from warpline.dive.compare import ComparedKernel, DiveComparison
from warpline.reports.sections import Column, Content, Report, Section, Table, Text
from warpline.reports.text import shorten
from warpline.units import several

MAX_NAME = 60
WHOLE = 1000
"""Larger figures are shown without decimals."""
MAX_CHANGES = 8
"""Changes of a kernel that are shown without -v."""


def report(comparison: DiveComparison, *, verbose: bool = False) -> Report:
    """All kernels in one table, then what changed in each."""
    if comparison.kernels:
        lead: Content = _summary(comparison)
    else:
        names = "for two implementations, name each: --kernel NAME_IN_A --kernel NAME_IN_B"
        lead = Text(f"No kernel has the same name in both reports; {names}", "strong")
    sections = [Section("kernels", "Kernels", (lead,), is_lead=True)]
    for number, kernel in enumerate(comparison.kernels):
        title = f"{_named(kernel)}: {kernel.verdict}"
        sections.append(Section(f"kernel_{number}", title, tuple(_kernel(kernel, verbose))))
    for name, where, kernels in (
        ("only_a", comparison.a, comparison.only_a),
        ("only_b", comparison.b, comparison.only_b),
    ):
        if kernels:
            names = ", ".join(sorted({shorten(kernel.function, MAX_NAME) for kernel in kernels}))
            sections.append(Section(name, f"Only in {where}", (Text(f"{several(len(kernels), 'kernel')}: {names}"),)))
    return Report(f"{comparison.a} → {comparison.b}", tuple(sections))


def _named(kernel: ComparedKernel) -> str:
    """The kernel's name; both names where another one took its place."""
    before, after = (shorten(one.kernel.function, MAX_NAME) for one in (kernel.before, kernel.after))
    return after if before == after else f"{before} → {after}"


def _summary(comparison: DiveComparison) -> Table:
    columns = (
        Column("kernel", "kernel", key=True),
        Column("a_ns", "before", "ns"),
        Column("b_ns", "after", "ns"),
        Column("gain", "gain", "gain"),
        Column("verdict", "verdict"),
        Column("reason_a", "reason before", priority=2),
        Column("reason_b", "reason after", priority=2),
    )
    rows = tuple(
        (
            _named(kernel),
            kernel.before.kernel.duration_ns,
            kernel.after.kernel.duration_ns,
            kernel.gain,
            kernel.verdict,
            kernel.before.reason,
            kernel.after.reason,
        )
        for kernel in comparison.kernels
    )
    return Table(columns, rows)


def _kernel(kernel: ComparedKernel, verbose: bool) -> Iterator[Content]:
    yield Text(kernel.sentence, "strong")
    changes = kernel.changes if verbose else kernel.changes[:MAX_CHANGES]
    if not changes:
        return
    columns = (
        Column("metric", "metric", key=True),
        Column("a", "before", "number"),
        Column("b", "after", "number"),
        Column("ratio", "ratio", "number"),
        Column("name", "name in Nsight Compute", priority=3),
    )
    rows = tuple(
        (
            f"{change.words}, {change.unit}" if change.unit else change.words,
            _figure(change.before),
            _figure(change.after),
            _figure(change.ratio),
            change.metric,
        )
        for change in changes
    )
    hidden = len(kernel.changes) - len(changes)
    yield Table(columns, rows, hidden, f"{several(hidden, 'metric')} more with -v" if hidden else "")


def _figure(value: float | None) -> str | None:
    return None if value is None else f"{value:,.0f}" if abs(value) >= WHOLE else f"{value:.3g}"
