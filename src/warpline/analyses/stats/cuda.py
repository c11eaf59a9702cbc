"""Reports about CUDA: API calls, kernels, copies and sets, each as a summary and in order of start."""

from __future__ import annotations

import polars as pl

from warpline.analyses.stats.numbers import DURATION, WITH_DURATION, bytes_per_second, megabytes, spread, time_summary
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
    thread_ids,
)
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


def cuda_gpu_trace(trace: Trace) -> pl.DataFrame:
    """Every kernel, copy and set with its launch geometry, memory, throughput and place."""
    kind = pl.col("kind").cast(pl.String)
    rows = trace.gpu.stored.with_row_index("gpu_id").filter(kind.is_in([KERNEL, MEMCPY, MEMSET]))
    require(rows, "cuda_gpu_trace", "kernels or GPU memory operations", "record with CUDA tracing on (nsys: -t cuda)")
    rows = rows.with_columns(WITH_DURATION).join(
        trace.devices.stored.select("device", pl.col("name").alias("device_name")).unique("device", keep="first"),
        on="device",
        how="left",
        maintain_order="left",
    )
    source, target = pl.col("source_memory").cast(pl.String), pl.col("target_memory").cast(pl.String)
    # The driver moves unified memory by itself, in no context and on no stream.
    migration = pl.col("copy_kind").cast(pl.String).str.starts_with("Unified").fill_null(False)
    return rows.sort("start_ns", "gpu_id").select(
        pl.col("start_ns").alias("Start (ns)"),
        pl.col(DURATION).alias("Duration (ns)"),
        pl.col("correlation").alias("CorrId"),
        *(pl.col(f"grid_{axis}").alias(f"Grd{axis.upper()}") for axis in "xyz"),
        *(pl.col(f"block_{axis}").alias(f"Blk{axis.upper()}") for axis in "xyz"),
        pl.col("registers").alias("Reg/Trd"),
        megabytes(pl.col("shared_static_bytes")).alias("StcSMem (MB)"),
        megabytes(pl.col("shared_dynamic_bytes")).alias("DymSMem (MB)"),
        megabytes(pl.col("bytes")).alias("Bytes (MB)"),
        megabytes(bytes_per_second()).alias("Throughput (MB/s)"),
        # nsys lists the memory that was set under the source.
        pl.when(kind == MEMSET).then(target).otherwise(source).alias("SrcMemKd"),
        pl.when(kind != MEMSET).then(target).alias("DstMemKd"),
        pl.when(pl.col("device_name").is_not_null())
        .then(pl.format("{} ({})", "device_name", "device"))
        .otherwise(pl.col("device").cast(pl.String))
        .alias("Device"),
        pl.when(~migration).then(pl.col("context")).alias("Ctx"),
        pl.col("green_context").alias("GreenCtx"),
        pl.when(~migration).then(pl.col("stream")).alias("Strm"),
        operation_name().alias("Name"),
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
    rows = trace.gpu.stored.filter(kind.is_in([KERNEL, MEMCPY, MEMSET]))
    require(rows, report, "kernels or GPU memory operations", "record with CUDA tracing on (nsys: -t cuda)")
    return rows.select(
        pl.when(kind == KERNEL).then(pl.lit("CUDA_KERNEL")).otherwise(pl.lit("MEMORY_OPER")).alias("category"),
        operation_name().alias("operation"),
        WITH_DURATION,
    )


def _by_category(rows: pl.DataFrame) -> pl.DataFrame:
    return time_summary(rows, {"category": "Category", "operation": "Operation"}, "Instances")
