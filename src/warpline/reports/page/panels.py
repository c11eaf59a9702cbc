"""The data of the panels below the timeline: one function per panel, null where a trace has nothing to show."""

from __future__ import annotations

from warpline.analyses.roofline.pieces import Gathered
from warpline.findings.diagnosis import Diagnosis
from warpline.reports.page.budget_panel import budget_panel
from warpline.reports.page.contract import Panels, StepTimes
from warpline.reports.page.flame_panel import flame_panel
from warpline.reports.page.memory_panel import memory_panel
from warpline.reports.page.numbers_panel import numbers_panel
from warpline.reports.page.roofline_panel import roofline_panel
from warpline.reports.page.tables_panel import tables_panel
from warpline.reports.page.whatif_panel import whatif_panel


def panels(diagnosis: Diagnosis, work: Gathered, zero_ns: int) -> Panels:
    """The data of all panels; `work` is that of the trace's operations, `zero_ns` the timeline's zero."""
    return Panels(
        whatif=whatif_panel(diagnosis),
        steps=_steps(diagnosis, zero_ns),
        tables=tables_panel(diagnosis, work),
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
