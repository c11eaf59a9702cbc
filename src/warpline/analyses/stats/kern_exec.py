"""From launch to finish: ``cuda_kern_exec_sum`` and ``cuda_kern_exec_trace``.

A kernel's life has three parts: the API call that launched it, the wait in the queue from the end of that
call to the kernel's start, and the kernel. A kernel that starts before its call returns never queued. The
total runs from the start of the call to the end of the later of the two.
"""

from __future__ import annotations

import polars as pl

from warpline.analyses.stats.numbers import DURATION, spread, titled
from warpline.analyses.stats.rows import api_calls, dimensions, kernels, require, thread_ids
from warpline.trace.trace import Trace


def cuda_kern_exec_sum(trace: Trace) -> pl.DataFrame:
    """Launch, queue and kernel times for each kernel and the function that launched it."""
    keys = ["pid", "tid", "device", "api_name", "name"]
    groups = (
        _launches(trace, "cuda_kern_exec_sum")
        .group_by(keys)
        .agg(*spread("total_ns", "t_"), *spread("api_ns", "a_"), *spread("queue_ns", "q_"), *spread(DURATION, "k_"))
    )
    names = [pl.col("api_name", "name").cast(pl.String)]
    return (
        groups.with_columns(names)
        .sort(["t_avg", *keys], descending=[True] + [False] * len(keys))
        .select(
            pl.col("pid").alias("PID"),
            pl.col("tid").alias("TID"),
            pl.col("device").alias("DevId"),
            pl.col("t_count").alias("Count"),
            pl.col("q_count").alias("QCount"),
            *titled("t_", "T"),
            *titled("a_", "A"),
            *titled("q_", "Q"),
            *titled("k_", "K"),
            pl.col("api_name").alias("API Name"),
            pl.col("name").alias("Kernel Name"),
        )
    )


def cuda_kern_exec_trace(trace: Trace) -> pl.DataFrame:
    """Launch, queue and kernel times of every kernel, in order of launch."""
    return (
        _launches(trace, "cuda_kern_exec_trace")
        .sort("api_start", "start_ns", maintain_order=True)
        .select(
            pl.col("api_start").alias("API Start (ns)"),
            pl.col("api_ns").alias("API Dur (ns)"),
            pl.when(pl.col("queue_ns").is_not_null()).then(pl.col("api_end")).alias("Queue Start (ns)"),
            pl.col("queue_ns").alias("Queue Dur (ns)"),
            pl.col("start_ns").alias("Kernel Start (ns)"),
            pl.col(DURATION).alias("Kernel Dur (ns)"),
            pl.col("total_ns").alias("Total Dur (ns)"),
            pl.col("pid").alias("PID"),
            pl.col("tid").alias("TID"),
            pl.col("device").alias("DevId"),
            pl.col("api_name").cast(pl.String).alias("API Function"),
            dimensions("grid").alias("GridXYZ"),
            dimensions("block").alias("BlockXYZ"),
            pl.col("name").cast(pl.String).alias("Kernel Name"),
        )
    )


def _launches(trace: Trace, report: str) -> pl.DataFrame:
    """Kernels joined to the API calls that launched them."""
    calls = api_calls(trace, report).join(thread_ids(trace), on="thread", how="left", maintain_order="left")
    rows = kernels(trace, report).join(
        calls.select(
            "api_id",
            "pid",
            "tid",
            pl.col("name").alias("api_name"),
            pl.col("start_ns").alias("api_start"),
            pl.col("end_ns").alias("api_end"),
            pl.col(DURATION).alias("api_ns"),
        ),
        on="api_id",
        maintain_order="left",
    )
    require(rows, report, "kernels whose launch was recorded", "record runtime and driver calls with the kernels")
    queued = pl.col("start_ns") - pl.col("api_end")
    return rows.with_columns(
        pl.when(queued > 0).then(queued).alias("queue_ns"),
        (pl.max_horizontal("end_ns", "api_end") - pl.col("api_start")).alias("total_ns"),
    )
