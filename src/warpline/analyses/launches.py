"""Launches: the cost of each call, the delay until the operation starts, and the queue depth."""

from __future__ import annotations

import numpy as np
import polars as pl
from msgspec import Struct

from warpline.analyses.kernels import in_window
from warpline.trace.arrays import integers
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
    per_call = gpu.group_by("api_id").agg(operations=pl.len(), begun_ns=pl.col("start_ns").min())
    called = trace.stored("api")[["name", "start_ns", "end_ns"]]
    calls = per_call.hstack(called[per_call["api_id"]])
    cost = pl.col("end_ns") - pl.col("start_ns")
    delay = pl.col("begun_ns") - pl.col("start_ns")
    return (
        calls.lazy()
        .group_by("name")
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
        .with_columns(pl.col("name").cast(pl.String))
        .sort("call_total_ns", "name", descending=[True, False])
        .collect()
    )


def _launched(trace: Trace) -> pl.DataFrame:
    """Call and begin of the operations in the window that have a call."""
    gpu = in_window(trace.stored("gpu")[["api_id", "start_ns"]], trace)
    return gpu.filter(pl.col("api_id").is_not_null()) if gpu["api_id"].null_count() else gpu


def queue_depth(trace: Trace) -> QueueDepth | None:
    """Number of waiting operations at each launch; None without linked operations."""
    gpu = _launched(trace)
    if not len(gpu):
        return None
    launched = np.sort(trace.api.start_ns[integers(gpu["api_id"])])
    begun = np.sort(integers(gpu["start_ns"]))
    # Of operations that one call launched, the first counts.
    first = np.flatnonzero(np.diff(launched, prepend=launched[0] - 1))
    waiting = np.maximum(first - np.searchsorted(begun, launched[first], side="right"), 0)
    return QueueDepth(
        mean=float(waiting.mean()),
        median=float(np.median(waiting)),
        maximum=int(waiting.max()),
        empty_share=float((waiting == 0).mean()),
    )
