"""The rows of a trace as the reports name them: API functions, kernels and memory operations.

Also the one way in which a report says that the trace lacks its data.
"""

from __future__ import annotations

import polars as pl

from warpline.analyses.stats.numbers import WITH_DURATION
from warpline.errors import CannotAnswer
from warpline.sources.nsys.gpu import COPY_KINDS
from warpline.trace.trace import Trace
from warpline.untrusted_json import parse_json

KERNEL, MEMCPY, MEMSET = "kernel", "memcpy", "memset"

COPY_LABELS = dict(COPY_KINDS.values())


def require(rows: pl.DataFrame, report: str, lacking: str, hint: str) -> pl.DataFrame:
    """The rows, or the refusal to answer a report from none."""
    if rows.is_empty():
        raise CannotAnswer("no-data", f"{report}: cannot answer, because the trace has no {lacking}", hint)
    return rows


def api_calls(trace: Trace, report: str) -> pl.DataFrame:
    """CUDA API calls with their printed ``name`` and duration, and their row as ``api_id``."""
    calls = require(trace.api.stored, report, "CUDA API calls", "record with CUDA tracing on (nsys: -t cuda)")
    names = calls.select(pl.col("name").unique().cast(pl.String)).to_series()
    suffixes = _api_suffixes(trace)
    printed = pl.DataFrame({"name": names, "printed": [f"{name}{suffixes.get(name, '')}" for name in names]})
    return (
        calls.with_row_index("api_id")
        .join(printed.cast(pl.Categorical), on="name", how="left", maintain_order="left")
        .with_columns(
            pl.col("api_id").cast(pl.UInt32),
            pl.col("printed").alias("name"),
            WITH_DURATION,
        )
        .drop("printed")
    )


def _api_suffixes(trace: Trace) -> dict[str, str]:
    """Versions that nsys prints after a function's name.

    It drops the four digits of cudaLaunchKernel_v7000, and keeps those of CUDA 10 and later
    (cudaGraphLaunch_v10000) and of the driver (cuGetProcAddress_v2).
    """
    recorded = trace.meta.stored.filter(pl.col("key") == "api_suffixes")["value"].to_list()
    try:
        return {str(name): str(suffix) for name, suffix in parse_json(recorded[0]).items()} if recorded else {}
    except (ValueError, AttributeError):  # of thousands of functions the middle is cut out
        return {}


def thread_ids(trace: Trace) -> pl.DataFrame:
    """Row of ``threads`` as ``thread``, with ``pid``, ``tid``, name and priority."""
    return trace.threads.stored.with_row_index("thread").select(
        pl.col("thread").cast(pl.UInt32),
        pl.col("process").alias("pid"),
        "tid",
        pl.col("name").alias("thread_name"),
        "priority",
    )


def kernels(trace: Trace, report: str) -> pl.DataFrame:
    """Kernels with their duration; whole-graph bars and copies are not kernels."""
    rows = trace.gpu.stored.filter(pl.col("kind").cast(pl.String) == KERNEL)
    require(rows, report, "kernels", "record with CUDA tracing on (nsys: -t cuda --cuda-graph-trace=node)")
    return rows.with_columns(WITH_DURATION)


def operation_name() -> pl.Expr:
    """What a row of ``gpu`` is called: a kernel's name, or nsys's label for a copy or a set."""
    kind = pl.col("kind").cast(pl.String)
    copy = pl.col("copy_kind").cast(pl.String).replace_strict(COPY_LABELS, default="Unknown", return_dtype=pl.String)
    return (
        pl.when(kind == MEMCPY)
        .then(pl.format("[CUDA memcpy {}]", copy.fill_null("Unknown")))
        .when(kind == MEMSET)
        .then(pl.lit("[CUDA memset]"))
        .otherwise(pl.col("name").cast(pl.String))
    )


def memory_operations(trace: Trace, report: str) -> pl.DataFrame:
    """Copies and sets with their label as ``operation`` and their duration."""
    rows = trace.gpu.stored.filter(pl.col("kind").cast(pl.String).is_in([MEMCPY, MEMSET]))
    require(rows, report, "GPU memory operations", "record with CUDA tracing on (nsys: -t cuda)")
    return rows.with_columns(operation_name().alias("operation"), WITH_DURATION)


def dimensions(axes: str) -> pl.Expr:
    """Grid or block dimensions as nsys prints them: three numbers, each at least four wide."""
    sizes = pl.col([f"{axes}_{axis}" for axis in "xyz"])
    return pl.concat_str(sizes.cast(pl.String).fill_null("").str.pad_start(4), separator=" ")
