"""Reports that only nsys captures can answer: ``osrt_sum`` and ``um_sum``."""

from __future__ import annotations

import polars as pl

from warpline.analyses.stats.numbers import DURATION, WITH_DURATION, bytes_per_second, megabytes, time_summary
from warpline.analyses.stats.rows import require
from warpline.trace.trace import Trace

# nsys marks where the tracing of a process began and ended with rows of this name, and does not list them.
TRACING_MARK = "[Unknown]"

# nsys's default for this report; its option is rows=.
UM_ROWS = 10


def osrt_sum(trace: Trace) -> pl.DataFrame:
    """Time spent in each function of the operating system's runtime."""
    calls = trace.osrt.stored.filter(pl.col("name").cast(pl.String) != TRACING_MARK)
    require(calls, "osrt_sum", "OS runtime calls", "record with nsys profile -t osrt")
    rows = calls.with_columns(WITH_DURATION)
    return time_summary(rows, {"name": "Name"}, "Num Calls")


def um_sum(trace: Trace) -> pl.DataFrame:
    """Unified memory: the ten addresses that migrated fastest, with sizes and page faults.

    nsys needs the record of CPU page faults before it answers, and so does this report.
    """
    kind = pl.col("copy_kind").cast(pl.String)
    moved = trace.gpu.stored.filter(kind.is_in(["UnifiedHtoD", "UnifiedDtoH"]) & pl.col("address").is_not_null())
    hint = "record with nsys profile --cuda-um-cpu-page-faults=true --cuda-um-gpu-page-faults=true"
    require(moved, "um_sum", "unified-memory migrations", hint)
    faults = trace.faults.stored.with_columns(pl.col("kind").cast(pl.String))
    require(faults.filter(pl.col("kind") == "cpu"), "um_sum", "CPU page faults of unified memory", hint)
    migrations = moved.group_by("address").agg(
        pl.col("bytes").filter(kind == "UnifiedHtoD").sum().alias("to_device"),
        pl.col("bytes").filter(kind == "UnifiedDtoH").sum().alias("to_host"),
        pl.col("bytes").sum(),
        (pl.col("end_ns") - pl.col("start_ns")).sum().alias(DURATION),
    )
    counts = faults.group_by("address").agg(
        pl.col("count").filter(pl.col("kind") == side).sum().alias(f"{side}_faults") for side in ("cpu", "gpu")
    )
    rows = migrations.join(counts, on="address", how="left", maintain_order="left").with_columns(
        bytes_per_second().alias("per_second")
    )
    rows = rows.sort(["per_second", "address"], descending=[True, False], nulls_last=True).head(UM_ROWS)
    return rows.select(
        pl.Series("Virtual Address", [f"0x{address:X}" for address in rows["address"]], pl.String),
        megabytes(_if_any("to_device")).alias("HtoD Migration size (MB)"),
        megabytes(_if_any("to_host")).alias("DtoH Migration size (MB)"),
        _if_any("cpu_faults").alias("CPU Page Faults"),
        # The space is nsys's own.
        _if_any("gpu_faults").alias(" GPU Page Faults"),
        megabytes(pl.col("per_second")).alias("Migration Throughput (MB/s)"),
    )


def _if_any(column: str) -> pl.Expr:
    return pl.when(pl.col(column) > 0).then(pl.col(column))
