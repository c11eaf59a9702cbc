"""Reports about CUDA API calls: ``cuda_api_sum`` and ``cuda_api_trace``."""

from __future__ import annotations

import polars as pl

from warpline.analyses.stats.numbers import DURATION, time_summary
from warpline.analyses.stats.rows import api_calls, thread_ids
from warpline.trace.trace import Trace


def cuda_api_sum(trace: Trace) -> pl.DataFrame:
    """Time spent in each CUDA API function."""
    return time_summary(api_calls(trace, "cuda_api_sum"), {"name": "Name"}, "Num Calls")


def cuda_api_trace(trace: Trace) -> pl.DataFrame:
    """Every CUDA API call, in order of start."""
    calls = api_calls(trace, "cuda_api_trace").join(thread_ids(trace), on="thread", how="left", maintain_order="left")
    return calls.sort("start_ns", "api_id").select(
        pl.col("start_ns").alias("Start (ns)"),
        pl.col(DURATION).alias("Duration (ns)"),
        pl.col("name").cast(pl.String).alias("Name"),
        pl.col("return_code").alias("Result"),
        pl.col("correlation").alias("CorrID"),
        pl.col("pid").alias("Pid"),
        pl.col("tid").alias("Tid"),
        pl.col("priority").alias("T-Pri"),
        pl.col("thread_name").alias("Thread Name"),
    )
