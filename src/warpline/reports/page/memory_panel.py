"""Memory of each device over time, as `warpline memory` counts it."""

from __future__ import annotations

from warpline.analyses.memory.allocations import Allocations, allocations_of
from warpline.analyses.memory.curve import memory_curve
from warpline.findings.diagnosis import Diagnosis
from warpline.reports.page.contract import Curve, Memory

POINTS = 800


def memory_panel(diagnosis: Diagnosis, zero_ns: int) -> Memory | None:
    """A curve for each device with allocations; None if the profile has none (profile_memory=True records them)."""
    curves = [_curve(allocations, zero_ns) for allocations in allocations_of(diagnosis.trace) if len(allocations)]
    return Memory(curves) if curves else None


def _curve(allocations: Allocations, zero_ns: int) -> Curve:
    curve = memory_curve(allocations, points=POINTS)
    return Curve(
        title=allocations.device,
        times_ns=(curve.time_ns - zero_ns).tolist(),
        allocated_bytes=curve.allocated_bytes.tolist(),
        reserved_bytes=[] if curve.reserved_bytes is None else curve.reserved_bytes.tolist(),
    )
