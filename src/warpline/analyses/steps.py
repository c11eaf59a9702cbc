"""Each step: its duration, the devices' busy time, and its operations."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from warpline.intervals import Spans, union
from warpline.trace.arrays import integers, per_device
from warpline.trace.trace import Trace


def step_times(trace: Trace) -> pl.DataFrame:
    """Index, name, length, busy time of the busiest device, and operations begun, for the steps in view.

    A step that only launches is as long as its work on the device.
    """
    steps = trace.steps_in_view.stored
    gpu = trace.stored("gpu")[["device", "start_ns", "end_ns"]]
    starts, ends = trace.step_spans
    busy = np.zeros(len(steps), np.int64)
    for _, rows in per_device(gpu):
        spans = union(integers(rows["start_ns"]), integers(rows["end_ns"]))
        busy = np.maximum(busy, covered_before(spans, ends) - covered_before(spans, starts))
    begun = np.sort(integers(gpu["start_ns"]))
    operations = np.searchsorted(begun, ends) - np.searchsorted(begun, starts)
    times = {"start_ns": starts, "length_ns": ends - starts, "busy_ns": busy, "operations": operations}
    return pl.DataFrame([steps["index"], steps["name"], *(pl.Series(name, each) for name, each in times.items())])


def covered_before(spans: Spans, moments: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Time of the set before each moment."""
    if not len(spans):
        return np.zeros(len(moments), np.int64)
    lengths = np.concatenate(([0], np.cumsum(spans.ends - spans.starts)))
    begun = np.searchsorted(spans.starts, moments, side="right")
    beyond = np.maximum(spans.ends[np.maximum(begun, 1) - 1] - moments, 0)
    result: npt.NDArray[np.int64] = np.where(begun > 0, lengths[begun] - beyond, 0)
    return result
