"""Memory of each device over time, as few points that keep every peak."""

from __future__ import annotations

import numpy as np
import polars as pl

from warpline.findings.diagnosis import Diagnosis
from warpline.reports.page.contract import Curve, Memory
from warpline.trace.columns import Int64s, integers

POINTS = 800


def memory_panel(diagnosis: Diagnosis, zero_ns: int) -> Memory | None:
    """A curve for each device with allocations; None if the profile has none (profile_memory=True records them)."""
    events = diagnosis.trace.memory.filter(
        pl.col("allocated_bytes").is_not_null(), pl.col("device").fill_null(-1) >= 0
    ).sort("time_ns", maintain_order=True)
    curves = [
        _curve(f"GPU {device}", rows, zero_ns)
        for (device,), rows in sorted(events.group_by("device", maintain_order=True))
    ]
    return Memory(curves) if curves else None


def _curve(title: str, rows: pl.DataFrame, zero_ns: int) -> Curve:
    times, allocated = integers(rows["time_ns"]) - zero_ns, integers(rows["allocated_bytes"])
    reserved = integers(rows["reserved_bytes"], 0) if rows["reserved_bytes"].is_not_null().any() else None
    edges = np.linspace(times[0], times[-1], POINTS, endpoint=False)
    first = np.unique(np.searchsorted(times, edges)) if len(times) > POINTS else np.arange(len(times))
    return Curve(
        title=title,
        times_ns=times[first].tolist(),
        allocated_bytes=_peaks(allocated, first),
        reserved_bytes=_peaks(reserved, first) if reserved is not None else [],
    )


def _peaks(values: Int64s, first: Int64s) -> list[int]:
    peaks: list[int] = np.maximum.reduceat(values, first).tolist()
    return peaks
