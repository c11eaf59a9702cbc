"""The data of the panels below the timeline: one function per panel, null where a trace has nothing to show."""

from __future__ import annotations

from warpline.findings.diagnosis import Diagnosis
from warpline.reports.page.contract import Panels, StepTimes


def panels(diagnosis: Diagnosis, zero_ns: int) -> Panels:
    """The data of all panels; `zero_ns` is the timeline's zero."""
    return Panels(steps=_steps(diagnosis, zero_ns))


def _steps(diagnosis: Diagnosis, zero_ns: int) -> StepTimes | None:
    steps = diagnosis.steps
    if len(steps) < 2:
        return None
    starts = (steps["start_ns"] - zero_ns).to_list()
    return StepTimes(steps["length_ns"].to_list(), steps["busy_ns"].to_list(), starts)
