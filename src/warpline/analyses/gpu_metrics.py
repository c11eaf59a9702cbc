"""GPU metrics that nsys samples (`--gpu-metrics-devices`): SMs, tensor cores, DRAM, PCIe, NVLink over the steps.

A metric in percent says how much of a unit's peak was used in the time since the sample before. Means are over samples,
which the hardware takes at a fixed rate.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from warpline.analyses.breakdown import busy_spans
from warpline.analyses.steps import in_steps
from warpline.errors import CannotAnswer
from warpline.intervals import Spans, covered_before, union
from warpline.trace.arrays import NONE, Bools, Int64s, combinations
from warpline.trace.schema import Counters
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
    counters = trace.counters[~np.isnan(trace.counters.value)]
    if not len(counters):
        raise CannotAnswer("no-gpu-metrics", NO_METRICS, HOW)
    chosen, which = combinations(counters.device, counters.name.codes)
    found = [_metric(trace, counters[which == number]) for number in range(len(chosen))]
    place = {unit: number for number, (unit, _) in enumerate(UNITS)}
    return tuple(sorted(found, key=lambda one: (one.device or 0, place.get(one.unit or "", len(UNITS)), one.name)))


def _metric(trace: Trace, samples: Counters) -> GpuMetric:
    """The samples of one metric of one device."""
    device, name, moments = int(samples.device[0]), samples.name.text(0) or "", samples.time_ns
    values = samples.value / HERTZ if name.endswith("[MHz]") else samples.value  # nsys samples clocks in hertz
    running = _within(busy_spans(trace.gpu[trace.gpu.device == device], trace.whole().window), moments)
    inside = in_steps(trace, moments)
    return GpuMetric(
        None if device == NONE else device,
        name,
        next((unit for unit, pattern in UNITS if re.search(pattern, name)), None),
        len(values),
        float(values.mean()),
        float(values.max()),
        float(values[running].mean()) if running.any() else None,
        float(values[inside].mean()) if inside.any() else None,
        {label: float(values[during].mean()) for label, during in _in_ranges(trace, moments) if during.any()},
    )


def _within(spans: Spans, moments: Int64s) -> Bools:
    return covered_before(spans, moments) > covered_before(spans, moments - 1)


def _in_ranges(trace: Trace, moments: Int64s) -> Iterator[tuple[str, Bools]]:
    """Which samples fall into the ranges of each name, longest first: into their GPU work where there is any."""
    ranges = trace.ranges
    starts = np.where(ranges.gpu_start_ns == NONE, ranges.start_ns, ranges.gpu_start_ns)
    ends = np.where(ranges.gpu_end_ns == NONE, ranges.end_ns, ranges.gpu_end_ns)
    names, closed = ranges.name, (ranges.name.codes != NONE) & (ends != NONE)
    total = np.bincount(names.codes[closed], (ends - starts)[closed], len(names.words))
    present = np.unique(names.codes[closed]).tolist()
    for code in sorted(present, key=lambda code: (-total[code], names.words[code]))[:MOST_RANGES]:
        rows = closed & (names.codes == code)
        yield names.words[code], _within(union(starts[rows], ends[rows]), moments)
