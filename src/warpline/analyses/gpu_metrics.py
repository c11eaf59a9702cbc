"""GPU metrics that nsys samples (`--gpu-metrics-devices`): SMs, tensor cores, DRAM, PCIe, NVLink over the steps.

A metric in percent says how much of a unit's peak was used in the time since the sample before. Means are over samples,
which the hardware takes at a fixed rate.
"""

from __future__ import annotations

import re

import numpy as np
import polars as pl

from warpline.analyses.breakdown import busy_spans
from warpline.analyses.steps import covered_before
from warpline.errors import CannotAnswer
from warpline.records import dataclass
from warpline.trace.columns import Bools, Int64s, integers
from warpline.trace.trace import Trace

UNITS = (
    ("SMs active", r"^SMs? Active\b"),
    ("SM issue", r"^SM Issue\b"),
    ("tensor cores", r"\bTensor (Core )?(Active|Pipe)"),
    ("DRAM read", r"^DRAM Read\b"),
    ("DRAM write", r"^DRAM Write\b"),
    ("PCIe read", r"^PCIe RX\b"),
    ("PCIe write", r"^PCIe TX\b"),
    ("NVLink receive", r"^NVLink.* RX\b"),
    ("NVLink send", r"^NVLink.* TX\b"),
)
"""What a metric is about, by its name in nsys; other metrics keep their name alone."""
NO_METRICS = "cannot answer, because the trace has no GPU metrics"
HOW = "record with nsys profile --gpu-metrics-devices=all"


@dataclass(frozen=True, slots=True)
class GpuMetric:
    """One metric of one device."""

    device: int | None
    name: str
    unit: str | None
    """A name of UNITS."""
    samples: int
    mean: float
    maximum: float
    busy_mean: float | None
    """While a kernel or copy was running on the device; None without such samples."""
    step_mean: float | None
    """Within the steps in view; None without steps."""


def gpu_metrics(trace: Trace) -> tuple[GpuMetric, ...]:
    """Every sampled metric, known units first."""
    counters = trace.counters.drop_nulls("value")
    if not len(counters):
        raise CannotAnswer("no-gpu-metrics", NO_METRICS, HOW)
    found = []
    for (device, name), rows in counters.group_by("device", pl.col("name").cast(pl.String), maintain_order=True):
        values, moments = rows["value"].to_numpy(), integers(rows["time_ns"])
        running = _while_busy(trace, device, moments)
        inside = _in_steps(trace, moments)
        found.append(
            GpuMetric(
                device,
                str(name),
                next((unit for unit, pattern in UNITS if re.search(pattern, str(name))), None),
                len(values),
                float(values.mean()),
                float(values.max()),
                float(values[running].mean()) if running.any() else None,
                float(values[inside].mean()) if inside.any() else None,
            )
        )
    order = [unit for unit, _ in UNITS]
    place = {unit: number for number, unit in enumerate(order)}
    return tuple(sorted(found, key=lambda one: (one.device or 0, place.get(one.unit or "", len(order)), one.name)))


def _while_busy(trace: Trace, device: object, moments: Int64s) -> Bools:
    spans = busy_spans(trace.gpu.filter(pl.col("device") == device), trace.whole().window)
    busy: Bools = covered_before(spans, moments) > covered_before(spans, moments - 1)
    return busy


def _in_steps(trace: Trace, moments: Int64s) -> Bools:
    starts, ends = trace.step_spans
    if not len(starts):
        return np.zeros(len(moments), bool)
    at = np.searchsorted(starts, moments, side="right") - 1
    inside: Bools = (at >= 0) & (moments < ends[at])
    return inside
