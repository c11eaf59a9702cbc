"""Which kernels Nsight Compute should look into, and the commands, as a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from warpline.dive.inside_kernels import InsideKernel, InsideKernels
from warpline.dive.ncu_plan import PASSES, STEPS_BEFORE, NcuRun, by_hand
from warpline.reports.sections import Column, Command, Commands, Content, Report, Section, Table, Text
from warpline.units import several

SCHEMA = "warpline.dive-plan/1"
EXPLAINED = 5
"""Kernels that are listed although the timeline explains them."""


def plan_report(found: InsideKernels, count: int, runs: Sequence[NcuRun], again: str, program: str) -> Report:
    """The chosen kernels, what the timeline explains, and ncu's command lines."""
    chosen = found.chosen(count)
    explained = [kernel for kernel in found.kernels if kernel.answer == "timeline"]
    sections = []
    if chosen:
        sections.append(Section("chosen", "Kernels for Nsight Compute", (_table(chosen),)))
        sections.append(Section("commands", "Commands", tuple(_commands(found, chosen, runs, again, program))))
    else:
        text = Text("The timeline explains every kernel with over 1 % of the time: Nsight Compute is not needed.")
        sections.append(Section("chosen", "Kernels for Nsight Compute", (text,)))
    if explained:
        longest = sorted(explained, key=lambda kernel: -kernel.time_ns)[:EXPLAINED]
        sections.append(Section("explained", "Explained by the timeline", (_table(longest),)))
    title = f"{several(len(chosen), 'kernel')} to look into"
    return Report(title, tuple(sections))


def plan_dict(found: InsideKernels, count: int, runs: Sequence[NcuRun], program: str) -> dict[str, Any]:
    """The same for --json."""
    chosen = found.chosen(count)
    return {
        "schema": SCHEMA,
        "kernels": [{**kernel.to_dict(), "command": by_hand(found, kernel, program)} for kernel in chosen],
        "explained": [kernel.to_dict() for kernel in found.kernels if kernel.answer == "timeline"],
        "runs": [
            {
                "functions": list(run.focus.functions),
                "launch_skip": run.focus.skip,
                "launch_count": run.focus.count,
                "sections": list(run.focus.sections),
                "passes": {"low": run.passes[0], "high": run.passes[1]},
                "seconds": round(run.seconds, 1),
            }
            for run in runs
        ],
    }


def _table(kernels: Sequence[InsideKernel]) -> Table:
    columns = (
        Column("share", "time", "share"),
        Column("launches", "launches", "count", priority=3),
        Column("mean_ns", "each", "ns"),
        Column("kernel", "kernel", key=True),
        Column("grid", "grid", priority=2, aligned="right"),
        Column("why", "because"),
    )
    rows = tuple(
        (kernel.share, kernel.launches, kernel.mean_ns, kernel.with_op, _grid(kernel), kernel.why) for kernel in kernels
    )
    return Table(columns, rows)


def _grid(kernel: InsideKernel) -> str:
    return "×".join(str(axis) for axis in kernel.grid) if kernel.grid else ""


def _commands(
    found: InsideKernels, chosen: Sequence[InsideKernel], runs: Sequence[NcuRun], again: str, program: str
) -> Iterator[Content]:
    launches = sum(run.focus.count for run in runs)
    seconds = sum(run.seconds for run in runs)
    yield Commands((Command(f"{again} -- {program}", "runs them and explains the result"),))
    yield Text(
        f"That starts the program {_times(len(runs))} and profiles {several(launches, 'launch', 'launches')}, "
        f"{PASSES[0]} to {PASSES[1]} passes each: up to {seconds:.0f} s beside the program's own time.",
        "quiet",
    )
    before = f"They skip {STEPS_BEFORE} steps, and count from the program's start." if found.steps > 1 else ""
    yield Text(f"By hand, one kernel at a time. {before}".strip())
    yield Commands(tuple(Command(by_hand(found, kernel, program), "") for kernel in chosen))


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
