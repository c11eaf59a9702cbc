"""``cuda_gpu_trace``: every kernel, copy and set, in order of start."""

from __future__ import annotations

import polars as pl

from warpline.analyses.stats.numbers import DURATION, bytes_per_second, megabytes
from warpline.analyses.stats.rows import KERNEL, MEMCPY, MEMSET, operation_name, require
from warpline.trace.trace import Trace


def cuda_gpu_trace(trace: Trace) -> pl.DataFrame:
    """Every kernel, copy and set with its launch geometry, memory, throughput and place."""
    kind = pl.col("kind").cast(pl.String)
    rows = trace.stored("gpu").with_row_index("gpu_id").filter(kind.is_in([KERNEL, MEMCPY, MEMSET]))
    require(rows, "cuda_gpu_trace", "kernels or GPU memory operations", "record with CUDA tracing on (nsys: -t cuda)")
    rows = rows.with_columns((pl.col("end_ns") - pl.col("start_ns")).alias(DURATION)).join(
        trace.stored("devices").select("device", pl.col("name").alias("device_name")).unique("device", keep="first"),
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
