"""The data of the panels below the timeline: one function per panel, null where a trace has nothing to show."""

from __future__ import annotations

import numpy as np

from warpline.analyses.memory.allocations import Allocations, allocations_of, memory_curve
from warpline.analyses.roofline.pieces import GpuWork
from warpline.analyses.roofline.table import roofline_table
from warpline.analyses.stacks import Stacks, all_stacks
from warpline.errors import CannotAnswer, WarplineError
from warpline.findings.budget import bare_budget
from warpline.findings.diagnosis import Diagnosis
from warpline.hardware import CitedFigure
from warpline.replay.costs.find import find_costs
from warpline.replay.representative_steps import in_warm_steps
from warpline.reports.page.contract import (
    BudgetInputs,
    Ceiling,
    Curve,
    Dot,
    Flame,
    Flames,
    MemoryCurves,
    Panels,
    Roofline,
    StepTimes,
)
from warpline.reports.page.numbers_panel import numbers_panel
from warpline.reports.page.tables_panel import tables_panel
from warpline.reports.page.whatif_panel import whatif_panel
from warpline.reports.roofline_plot import ceilings, drawable, shape_label
from warpline.trace.arrays import NONE

POINTS = 800
MOST_NODES, MOST_THREADS = 2_500, 4
MIN_SHARE = 0.0002
"""Narrower nodes are under a pixel wide on any screen."""
MOST_DOTS = 300


def panels(diagnosis: Diagnosis, work: GpuWork, zero_ns: int) -> Panels:
    """The data of all panels; `work` is that of the trace's operations, `zero_ns` the timeline's zero."""
    return Panels(
        whatif=whatif_panel(diagnosis),
        steps=_steps(diagnosis, zero_ns),
        tables=tables_panel(diagnosis),
        roofline=roofline_panel(diagnosis, work),
        flame=flame_panel(diagnosis),
        budget=budget_panel(diagnosis),
        memory=memory_panel(diagnosis, zero_ns),
        numbers=numbers_panel(diagnosis),
    )


def _steps(diagnosis: Diagnosis, zero_ns: int) -> StepTimes | None:
    steps = diagnosis.steps
    if len(steps) < 2:
        return None
    starts = (steps["start_ns"] - zero_ns).to_list()
    return StepTimes(steps["length_ns"].to_list(), steps["busy_ns"].to_list(), starts)


def memory_panel(diagnosis: Diagnosis, zero_ns: int) -> MemoryCurves | None:
    """A curve for each device with allocations; None if the profile has none (profile_memory=True records them)."""
    curves = [_curve(allocations, zero_ns) for allocations in allocations_of(diagnosis.trace) if len(allocations)]
    return MemoryCurves(curves) if curves else None


def _curve(allocations: Allocations, zero_ns: int) -> Curve:
    curve = memory_curve(allocations, points=POINTS)
    return Curve(
        title=allocations.device,
        times_ns=(curve.time_ns - zero_ns).tolist(),
        allocated_bytes=curve.allocated_bytes.tolist(),
        reserved_bytes=[] if curve.reserved_bytes is None else curve.reserved_bytes.tolist(),
    )


def budget_panel(diagnosis: Diagnosis) -> BudgetInputs | None:
    """None without launches, and where the trace was not replayed."""
    judgement = diagnosis.judgement
    if judgement is None:
        return None
    try:
        bare, costs = bare_budget(diagnosis.trace), find_costs(diagnosis.trace)
    except CannotAnswer:
        return None
    return BudgetInputs(
        launches=bare.budget.ops,
        cpu_ns=bare.budget.cpu_ns,
        gpu_ns=bare.budget.gpu_ns,
        graph_launch_ns=costs.host.graph_launch.expected,
        graph_gap_ns=costs.device.graph_gap.expected,
        step_ns=bare.step_ns,
        graph_ns=bare.graph_ns,
        loading_ns=bare.loading_ns,
    )


def flame_panel(diagnosis: Diagnosis) -> Flames | None:
    """GPU time by the stack that launched it, then the CPU time of the busiest threads."""
    found = all_stacks(diagnosis.trace)[: 1 + MOST_THREADS]
    return Flames([_cut(stacks) for stacks in found]) if found else None


def _cut(stacks: Stacks) -> Flame:
    """The widest nodes; what is left out shows as room beside them."""
    totals = stacks.node_totals()
    # A caller is at least as wide as what it calls, and comes before it: no kept node loses its caller.
    widest = np.argsort(-totals, kind="stable")[:MOST_NODES]
    kept = np.sort(widest[totals[widest] >= max(MIN_SHARE * stacks.total_ns, 1)])
    place = np.full(len(totals) + 1, NONE, np.int64)
    place[kept] = np.arange(len(kept))
    used, frame = np.unique(stacks.frame[kept], return_inverse=True)
    return Flame(
        name=stacks.name,
        frames=[stacks.frames[number] for number in used.tolist()],
        frame=frame.tolist(),
        parent=place[stacks.parent[kept]].tolist(),
        total_ns=totals[kept].tolist(),
    )


def roofline_panel(diagnosis: Diagnosis, work: GpuWork) -> Roofline | None:
    """The longest ops with FLOPs and bytes; None if the device's ceilings or all shapes are unknown."""
    try:
        table = roofline_table(in_warm_steps(diagnosis.trace), known_work=work)
    except WarplineError:
        return None
    memory = table.roof.bandwidth("dram") if table.roof else None
    entries = drawable(table)[:MOST_DOTS]
    if table.roof is None or memory is None or not entries:
        return None
    return Roofline(
        device=table.device,
        total_ns=float(table.total_ns),
        drawn_ns=sum(entry.time_ns for entry in entries),
        memory=_ceiling("memory", memory),
        compute=[_ceiling(name, figure) for name, figure in ceilings(table, table.roof)],
        dots=[
            Dot(
                name=entry.name,
                shapes=shape_label(entry.shapes),
                calls=entry.count,
                time_ns=entry.time_ns,
                intensity=entry.intensity or 0.0,
                flops_per_second=entry.flops_per_second,
                roof_pct=entry.roof_pct,
                bound=entry.bound,
            )
            for entry in entries
        ],
    )


def _ceiling(name: str, figure: CitedFigure) -> Ceiling:
    return Ceiling(name, figure.value, figure.origin)
