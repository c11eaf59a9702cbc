"""The dispatch path and the dispatch budget as sections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpline.reports.sections import Column, Report, Section, Table, Text
from warpline.units import duration, several, speedup

if TYPE_CHECKING:
    import polars as pl

    from warpline.analyses.budget import Budget

FEWER_LAUNCHES = 4
"""Example of how fusion reduces the number of launches."""
_COLUMNS = (
    Column("per_step", "per step", "count", priority=2),
    Column("python_ns", "Python", "ns"),
    Column("framework_ns", "framework", "ns"),
    Column("api_ns", "API", "ns"),
    Column("queue_ns", "queue", "ns", priority=2),
    Column("kernel_ns", "kernels", "ns"),
    Column("launches", "launches", "count", priority=3),
    Column("depth", "depth", "count", priority=4),
    Column("hidden_share", "hidden", "share", priority=3),
    Column("name", "op", key=True),
)


def path_report(table: pl.DataFrame, title: str) -> Report:
    """One line per op: mean time in each layer."""
    rows = tuple(
        (
            *(row[column.name] for column in _COLUMNS[:-1]),
            row["name"] + (f" {row['file']}:{row['line']} {row['function']}" if row["file"] else ""),
        )
        for row in table.rows(named=True)
    )
    note = (
        "Means per op. framework: the op and the ops it calls, without API calls; queue: from the call's return to the "
        "kernel; hidden: share of its CPU time while the GPU is busy."
    )
    return Report(title, (Section("ops", "Dispatch path", (Table(_COLUMNS, rows), Text(note, "quiet"))),))


def budget_report(budget: Budget, step_ns: float, graph_ns: float) -> Report:
    """The budget as sentences; gains are relative to the step."""
    slower = "dispatch on the CPU" if budget.bound == "cpu" else "the GPU"
    launches = f"{several(round(budget.ops), 'launch', 'launches')} a step"
    graph, fused = graph_ns, budget.fused_ns(FEWER_LAUNCHES)
    lines = [
        f"{launches} × {duration(budget.cpu_ns)} of CPU each = {duration(budget.dispatch_ns)} to dispatch",
        f"{launches} × {duration(budget.gpu_ns)} of GPU each = {duration(budget.work_ns)} to run",
        f"as one CUDA graph: {duration(graph)} ({speedup(step_ns / graph)})",
        f"with {FEWER_LAUNCHES} times fewer launches (fusion): {duration(fused)} ({speedup(step_ns / fused)})",
    ]
    crossover = budget.crossover_ops
    if crossover is not None:
        lines.insert(2, f"crossover: below {crossover:,.0f} launches for the same GPU time, the GPU would be the limit")
    title = f"Bound by {slower}: a step takes {duration(step_ns)}"
    section = Section("budget", "Budget", tuple(map(Text, lines)), is_lead=True)
    return Report(title, (section,))
