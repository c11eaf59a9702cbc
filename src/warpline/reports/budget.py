"""The dispatch budget as sections."""

from __future__ import annotations

from warpline.findings.budget import Outlook
from warpline.reports.sections import Report, Section, Text
from warpline.units import duration, several, speedup

SLOWER = {
    "cpu": "dispatch on the CPU",
    "gpu": "the GPU",
    "input": "loading data",
    "waits": "neither dispatch nor the GPU alone",
}
BOTH = {
    "cpu": "dispatch on the CPU and loading data, one after the other",
    "input": "loading data and dispatch on the CPU, one after the other",
}
ROUNDED = 0.005
"""A mean number of launches this close to a whole one is shown as that: the product beside it still agrees."""


def budget_report(outlook: Outlook) -> Report:
    """The budget as sentences; gains are relative to the step."""
    budget, step_ns = outlook.budget, outlook.step_ns
    slower = (BOTH if outlook.is_bound_by_both else SLOWER)[outlook.bound]
    is_whole = abs(budget.ops - round(budget.ops)) < ROUNDED * budget.ops
    number = several(round(budget.ops), "launch", "launches") if is_whole else f"{budget.ops:.1f} launches"
    launches = f"{number} a step"
    fewer = f"with {outlook.fusion:g} times fewer launches (fusion)"
    lines = [
        f"{launches} × {duration(budget.cpu_ns)} of CPU each = {duration(budget.dispatch_ns)} to dispatch",
        f"{launches} × {duration(budget.gpu_ns)} of GPU each = {duration(budget.work_ns)} to run",
        f"as one CUDA graph: {duration(outlook.graph_ns)} ({speedup(step_ns / outlook.graph_ns)})",
        f"{fewer}: {duration(outlook.fused_ns)} ({speedup(step_ns / outlook.fused_ns)})",
    ]
    crossover = budget.crossover_ops
    # Where the step waits or loads data, too, fewer launches need not make the GPU the limit.
    agrees = crossover is not None and outlook.bound == ("cpu" if budget.ops > crossover else "gpu")
    if crossover is not None and round(crossover) > 0 and agrees:
        few = several(round(crossover), "launch", "launches")
        lines.insert(2, f"crossover: below {few} for the same GPU time, the GPU is the limit")
    if outlook.bound == "waits":
        rest = duration(step_ns - outlook.host_ns)
        lines.insert(2, f"{rest} a step in which the launching threads wait, copy, load code or have nothing recorded")
    if outlook.loading_ns:
        lines.insert(2, f"{duration(outlook.loading_ns)} a step in which the same threads load data")
    content = [*map(Text, lines)]
    if copies := round(outlook.copies):
        are = "is a copy or memset" if copies == 1 else "are copies and memsets"
        content.append(Text(f"{copies:,} of the launches {are}.", "quiet"))
    if outlook.profiler_ns:
        content.append(Text(f"The profiler's {duration(outlook.profiler_ns)} of CPU a step are taken out.", "quiet"))
    title = f"Bound by {slower}: a step takes {duration(step_ns)}"
    return Report(title, (Section("budget", "Budget", tuple(content), is_lead=True),))
