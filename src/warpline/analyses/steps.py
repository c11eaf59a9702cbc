"""Each step: its duration, the devices' busy time, and its operations."""

from __future__ import annotations

import numpy as np
import polars as pl

from warpline.analyses.device import rows_by_device
from warpline.intervals import covered_before, union
from warpline.trace.arrays import NONE, Bools, Int64s, containing
from warpline.trace.trace import Trace


def step_times(trace: Trace) -> pl.DataFrame:
    """Index, name, length, busy time of the busiest device, and operations begun, for the steps in view.

    A step that only launches is as long as its work on the device.
    """
    steps, gpu = trace.steps_in_view, trace.gpu
    starts, ends = trace.step_spans
    busy = np.zeros(len(steps), np.int64)
    for _, rows in rows_by_device(gpu):
        spans = union(gpu.start_ns[rows], gpu.end_ns[rows])
        busy = np.maximum(busy, covered_before(spans, ends) - covered_before(spans, starts))
    begun = np.sort(gpu.start_ns)
    operations = np.searchsorted(begun, ends) - np.searchsorted(begun, starts)
    times = {"start_ns": starts, "length_ns": ends - starts, "busy_ns": busy, "operations": operations}
    return pl.DataFrame(
        {"index": steps.index, "name": steps.name.tolist(), **times}, schema_overrides={"name": pl.String}
    )


def in_steps(trace: Trace, moments: Int64s) -> Bools:
    """Which moments lie in one of the steps in view."""
    return containing(*trace.step_spans, moments) != NONE


def in_view(trace: Trace, moments: Int64s) -> Bools:
    """Which moments lie in the chosen steps; all of them without a choice."""
    if trace.chosen_steps is None:
        return np.ones(len(moments), bool)
    window = trace.window
    return (moments >= window.start_ns) & (moments < window.end_ns)
