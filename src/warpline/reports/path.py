"""The dispatch path and the dispatch budget, for a terminal."""

from __future__ import annotations

import polars as pl
from rich.console import Group, RenderableType
from rich.text import Text

from warpline.analyses.budget import Budget
from warpline.reports.numbers import numbers_table
from warpline.units import duration


def render_path(table: pl.DataFrame, width: int) -> RenderableType:
    """One line an op: how long it takes in each layer, on average."""
    rows = []
    for row in table.rows(named=True):
        place = f"  {row['file']}({row['line']}): {row['function']}" if row["file"] else ""
        rows.append(
            [
                f"{row['per_step']:,.1f}",
                duration(row["python_ns"]),
                duration(row["framework_ns"]),
                duration(row["api_ns"]),
                duration(row["queue_ns"]) if row["queue_ns"] is not None else "–",
                duration(row["kernel_ns"]),
                f"{row['launches']:.1f}",
                str(row["depth"]),
                f"{100 * row['hidden_share']:.0f} %",
                row["name"] + place,
            ]
        )
    titles = ["per step", "Python", "framework", "API", "queue", "kernels", "launches", "depth", "hidden", "op"]
    note = (
        "Means per op. framework: the op and the ops it calls, less API calls; queue: from the call's return to the "
        "kernel; hidden: share of the CPU's time while the GPU is busy."
    )
    return Group(numbers_table(titles, rows, width), Text(note, style="bright_black"))


def render_budget(budget: Budget) -> RenderableType:
    """The budget as the sentences one would say."""
    slower = "the CPU's dispatch" if budget.bound == "cpu" else "the GPU"
    count, graph, fused = f"{budget.ops:,.0f} launches a step", budget.graph_ns, budget.fused_ns(4)
    lines = [
        f"{count} x {duration(budget.cpu_ns)} of CPU each = {duration(budget.dispatch_ns)} to dispatch",
        f"{count} x {duration(budget.gpu_ns)} of GPU each = {duration(budget.work_ns)} to run",
        f"→ bound by {slower}: a step takes {duration(budget.step_ns)} at best",
        f"as one CUDA graph: {duration(graph)} ({budget.step_ns / graph:.1f}x)",
        f"with 4 times fewer launches (fusion): {duration(fused)} ({budget.step_ns / fused:.1f}x)",
    ]
    crossover = budget.crossover_ops
    if crossover is not None:
        lines.insert(3, f"crossover: with the same work in under {crossover:,.0f} launches the GPU would be the limit")
    return Text("\n".join(lines))
