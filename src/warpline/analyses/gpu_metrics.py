"""GPU metrics that nsys samples (`--gpu-metrics-devices`): SMs, tensor cores, DRAM, PCIe, NVLink over the steps.

A metric in percent says how much of a unit's peak was used in the time since the sample before. Means are over samples,
which the hardware takes at a fixed rate.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import polars as pl
from msgspec import Struct

from warpline.analyses.breakdown import busy_spans
from warpline.analyses.steps import covered_before
from warpline.errors import CannotAnswer
from warpline.intervals import Spans, union
from warpline.trace.arrays import Bools, Int64s, integers
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
HERTZ = 1_000_000
"""In a megahertz."""
MOST_RANGES = 12
"""Names of ranges that are summed up: those with most time."""
NO_METRICS = "cannot answer, because the trace has no GPU metrics"
HOW = "record with nsys profile --gpu-metrics-devices=all"


class GpuMetric(Struct, frozen=True):
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
    range_means: dict[str, float]
    """While the GPU worked for the ranges of a name, or during them if it did not; without names that have none."""


def gpu_metrics(trace: Trace) -> tuple[GpuMetric, ...]:
    """Every sampled metric, known units first."""
    counters = trace.stored("counters").drop_nulls("value")
    if not len(counters):
        raise CannotAnswer("no-gpu-metrics", NO_METRICS, HOW)
    found = []
    for (device, name), rows in counters.group_by("device", pl.col("name").cast(pl.String), maintain_order=True):
        values, moments = rows["value"].to_numpy(), integers(rows["time_ns"])
        values = values / HERTZ if str(name).endswith("[MHz]") else values  # nsys samples clocks in hertz
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
                {name: float(values[held].mean()) for name, held in _in_ranges(trace, moments) if held.any()},
            )
        )
    order = [unit for unit, _ in UNITS]
    place = {unit: number for number, unit in enumerate(order)}
    return tuple(sorted(found, key=lambda one: (one.device or 0, place.get(one.unit or "", len(order)), one.name)))


def _while_busy(trace: Trace, device: object, moments: Int64s) -> Bools:
    spans = busy_spans(trace.stored("gpu").filter(pl.col("device") == device), trace.whole().window)
    return _within(spans, moments)


def _within(spans: Spans, moments: Int64s) -> Bools:
    held: Bools = covered_before(spans, moments) > covered_before(spans, moments - 1)
    return held


def _in_steps(trace: Trace, moments: Int64s) -> Bools:
    starts, ends = trace.step_spans
    if not len(starts):
        return np.zeros(len(moments), bool)
    at = np.searchsorted(starts, moments, side="right") - 1
    inside: Bools = (at >= 0) & (moments < ends[at])
    return inside


def _in_ranges(trace: Trace, moments: Int64s) -> Iterator[tuple[str, Bools]]:
    """Which samples fall into the ranges of each name, longest first: into their GPU work where there is any."""
    spans = (pl.coalesce(f"gpu_{end}", end).alias(end) for end in ("start_ns", "end_ns"))
    named = trace.stored("ranges").select(pl.col("name").cast(pl.String), *spans).drop_nulls()
    totals = named.group_by("name").agg((pl.col("end_ns") - pl.col("start_ns")).sum().alias("time_ns"))
    for name in totals.sort("time_ns", "name", descending=(True, False)).head(MOST_RANGES)["name"]:
        rows = named.filter(pl.col("name") == name)
        yield str(name), _within(union(integers(rows["start_ns"]), integers(rows["end_ns"])), moments)
