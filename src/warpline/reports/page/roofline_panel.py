"""Ops below the device's roofline: the dots and ceilings of the plot."""

from __future__ import annotations

from warpline.analyses.roofline.pieces import Gathered
from warpline.analyses.roofline.table import roofline_table
from warpline.errors import WarplineError
from warpline.findings.diagnosis import Diagnosis
from warpline.hardware import Figure
from warpline.reports.page.contract import Ceiling, Dot, Roofline
from warpline.reports.roofline_plot import ceilings, drawable, shape_label

MOST_DOTS = 300


def roofline_panel(diagnosis: Diagnosis, work: Gathered) -> Roofline | None:
    """The longest ops with FLOPs and bytes; None if the device's ceilings or all shapes are unknown."""
    try:
        table = roofline_table(diagnosis.trace, known_work=work)
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


def _ceiling(name: str, figure: Figure) -> Ceiling:
    return Ceiling(name, figure.value, figure.origin)
