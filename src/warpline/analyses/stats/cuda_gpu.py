"""Summaries of what the devices ran: kernels, copies and sets, alone or together with the API calls."""

from __future__ import annotations

import polars as pl

from warpline.analyses.stats.numbers import DURATION, megabytes, spread, time_summary
from warpline.analyses.stats.rows import (
    KERNEL,
    MEMCPY,
    MEMSET,
    api_calls,
    dimensions,
    kernels,
    memory_operations,
    operation_name,
    require,
)
from warpline.trace.trace import Trace


def cuda_gpu_kern_sum(trace: Trace) -> pl.DataFrame:
    """Time spent in each kernel."""
    return time_summary(kernels(trace, "cuda_gpu_kern_sum"), {"name": "Name"}, "Instances", slowest_of_equals=True)


def cuda_gpu_kern_gb_sum(trace: Trace) -> pl.DataFrame:
    """Time spent in each kernel, apart by grid and block dimensions."""
    rows = kernels(trace, "cuda_gpu_kern_gb_sum").with_columns(
        dimensions("grid").alias("grid"), dimensions("block").alias("block")
    )
    keys = {"grid": "GridXYZ", "block": "BlockXYZ", "name": "Name"}
    return time_summary(rows, keys, "Instances", slowest_of_equals=True)


def cuda_gpu_mem_time_sum(trace: Trace) -> pl.DataFrame:
    """Time spent in each kind of memory operation."""
    return time_summary(memory_operations(trace, "cuda_gpu_mem_time_sum"), {"operation": "Operation"}, "Count")


def cuda_gpu_mem_size_sum(trace: Trace) -> pl.DataFrame:
    """Bytes moved or set by each kind of memory operation."""
    rows = memory_operations(trace, "cuda_gpu_mem_size_sum").drop_nulls("bytes")
    require(rows, "cuda_gpu_mem_size_sum", "sizes of memory operations", "record with a profiler that writes them")
    sizes = rows.group_by("operation").agg(spread("bytes"))
    return sizes.sort(["total", "operation"], descending=[True, False]).select(
        megabytes(pl.col("total")).alias("Total (MB)"),
        pl.col("count").alias("Count"),
        megabytes(pl.col("avg")).alias("Avg (MB)"),
        megabytes(pl.col("med")).alias("Med (MB)"),
        megabytes(pl.col("min")).alias("Min (MB)"),
        megabytes(pl.col("max")).alias("Max (MB)"),
        megabytes(pl.col("std")).alias("StdDev (MB)"),
        pl.col("operation").alias("Operation"),
    )


def cuda_gpu_sum(trace: Trace) -> pl.DataFrame:
    """Time of kernels and memory operations in one list."""
    return _by_category(_device_rows(trace, "cuda_gpu_sum"))


def cuda_api_gpu_sum(trace: Trace) -> pl.DataFrame:
    """Time of API calls, kernels and memory operations in one list."""
    calls = api_calls(trace, "cuda_api_gpu_sum").select(
        pl.lit("CUDA_API").alias("category"), pl.col("name").cast(pl.String).alias("operation"), DURATION
    )
    return _by_category(pl.concat([calls, _device_rows(trace, "cuda_api_gpu_sum")]))


def _device_rows(trace: Trace, report: str) -> pl.DataFrame:
    kind = pl.col("kind").cast(pl.String)
    rows = trace.stored("gpu").filter(kind.is_in([KERNEL, MEMCPY, MEMSET]))
    require(rows, report, "kernels or GPU memory operations", "record with CUDA tracing on (nsys: -t cuda)")
    return rows.select(
        pl.when(kind == KERNEL).then(pl.lit("CUDA_KERNEL")).otherwise(pl.lit("MEMORY_OPER")).alias("category"),
        operation_name().alias("operation"),
        (pl.col("end_ns") - pl.col("start_ns")).alias(DURATION),
    )


def _by_category(rows: pl.DataFrame) -> pl.DataFrame:
    return time_summary(rows, {"category": "Category", "operation": "Operation"}, "Instances")
