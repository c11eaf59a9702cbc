"""Summaries of ranges on the CPU: ``nvtx_sum``, ``nvtx_pushpop_sum`` and ``nvtx_startend_sum``.

A record_function annotation nests like a push/pop range and is reported as one.
"""

from __future__ import annotations

import polars as pl

from warpline.analyses.stats.numbers import WITH_DURATION, time_summary
from warpline.analyses.stats.rows import require, thread_ids
from warpline.trace.trace import Trace

PUSH_POP, START_END = "PushPop", "StartEnd"
KINETO = "kineto"
NO_START_END = ("start/end ranges: torch.profiler records none", "record with nsys profile -t nvtx")
STYLES = {"pushpop": PUSH_POP, "annotation": PUSH_POP, "startend": START_END}


def nvtx_sum(trace: Trace) -> pl.DataFrame:
    """Time spent in each range, by name and style."""
    return time_summary(named_ranges(trace, "nvtx_sum"), {"style": "Style", "range": "Range"}, "Instances")


def nvtx_pushpop_sum(trace: Trace) -> pl.DataFrame:
    """Time spent in each push/pop range."""
    return _one_style(trace, "nvtx_pushpop_sum", PUSH_POP)


def nvtx_startend_sum(trace: Trace) -> pl.DataFrame:
    """Time spent in each start/end range; torch.profiler records none."""
    if trace.source == KINETO:
        require(
            trace.ranges.stored.filter(pl.col("style").cast(pl.String) == "startend"),
            "nvtx_startend_sum",
            *NO_START_END,
        )
    return _one_style(trace, "nvtx_startend_sum", START_END)


def named_ranges(trace: Trace, report: str) -> pl.DataFrame:
    """Ranges with a duration: their printed name ``range`` (domain:name), ``style``, thread and process.

    Marks last no time, and Kineto's projections of annotations onto the GPU are not ranges of the CPU.
    """
    style = pl.col("style").cast(pl.String)
    rows = trace.ranges.stored.filter(style.is_in(list(STYLES)) & pl.col("end_ns").is_not_null())
    require(rows, report, "NVTX ranges or record_function annotations", "record with nsys profile -t nvtx, or annotate")
    return rows.join(thread_ids(trace), on="thread", how="left", maintain_order="left").select(
        pl.concat_str(pl.col("domain", "name").cast(pl.String).fill_null(""), separator=":")
        .cast(pl.Categorical)
        .alias("range"),
        style.replace_strict(STYLES, return_dtype=pl.String).alias("style"),
        "thread",
        "end_thread",
        "pid",
        "tid",
        "start_ns",
        "end_ns",
        WITH_DURATION,
    )


def _one_style(trace: Trace, report: str, style: str) -> pl.DataFrame:
    rows = named_ranges(trace, report).filter(pl.col("style") == style)
    return time_summary(rows, {"range": "Range"}, "Instances")
