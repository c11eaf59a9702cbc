"""Launches: the cost of each call, the delay until the operation starts, and the queue depth."""

from __future__ import annotations

import numpy as np
import polars as pl
from msgspec import Struct

from warpline.analyses.steps import in_view
from warpline.trace.arrays import NEVER, NONE
from warpline.trace.schema import Gpu
from warpline.trace.trace import Trace


class QueueDepth(Struct, frozen=True):
    """Operations launched but not yet started when the host launches the next one."""

    mean: float
    median: float
    maximum: int
    empty_share: float
    """Share of launches that found the queue empty: the device was waiting for them."""


def launch_calls(trace: Trace) -> pl.DataFrame:
    """API calls that launch GPU operations: calls, operations, cost of the call, delay until the operation starts."""
    gpu = _launched(trace)
    if not len(gpu):
        return pl.DataFrame(schema={"name": pl.String, "calls": pl.UInt32})
    calls, call = np.unique(gpu.api_id, return_inverse=True)
    begun = np.full(len(calls), NEVER)
    np.minimum.at(begun, call, gpu.start_ns)
    api = trace.api[calls]
    table = pl.DataFrame(
        {
            "name": api.name.series(),
            "operations": np.bincount(call).astype(np.uint32),
            "cost": api.end_ns - api.start_ns,
            "delay": begun - api.start_ns,
        }
    )
    cost, delay = pl.col("cost"), pl.col("delay")
    return (
        table.group_by("name")
        .agg(
            calls=pl.len(),
            operations=pl.col("operations").sum(),
            call_total_ns=cost.sum(),
            call_mean_ns=cost.mean(),
            call_median_ns=cost.median(),
            call_max_ns=cost.max(),
            delay_median_ns=delay.median(),
            delay_min_ns=delay.min(),
            delay_max_ns=delay.max(),
        )
        .sort("call_total_ns", "name", descending=[True, False])
    )


def _launched(trace: Trace) -> Gpu:
    """The operations in view that have a call."""
    gpu = trace.gpu
    return gpu[(gpu.api_id != NONE) & in_view(trace, gpu.start_ns)]


def queue_depth(trace: Trace) -> QueueDepth | None:
    """Number of waiting operations at each launch; None without linked operations."""
    gpu = _launched(trace)
    if not len(gpu):
        return None
    launched = np.sort(trace.api.start_ns[gpu.api_id])
    begun = np.sort(gpu.start_ns)
    # Of operations that one call launched, the first counts.
    first = np.flatnonzero(np.diff(launched, prepend=launched[0] - 1))
    waiting = np.maximum(first - np.searchsorted(begun, launched[first], side="right"), 0)
    return QueueDepth(
        mean=float(waiting.mean()),
        median=float(np.median(waiting)),
        maximum=int(waiting.max()),
        empty_share=float((waiting == 0).mean()),
    )
