"""Ranges and the GPU work launched within them: ``nvtx_kern_sum`` and ``nvtx_gpu_proj_sum``.

GPU work belongs to every range that its launching API call lies in, on the thread of that call. A range that one
thread starts and another ends belongs to neither, and gets no work. The projection of a range runs from the
start of the first such work to the end of the last. A graph replay recorded as one bar is not counted as work;
its nodes, where recorded, are.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import polars as pl

from warpline.analyses.stats.numbers import DURATION, WITH_DURATION, rounded, spread, titled
from warpline.analyses.stats.nvtx import named_ranges
from warpline.analyses.stats.rows import KERNEL, MEMCPY, MEMSET, require, thread_ids
from warpline.trace.arrays import NONE, Int64s, grouped
from warpline.trace.nesting import nest, order_for_nesting
from warpline.trace.trace import Trace


def nvtx_kern_sum(trace: Trace) -> pl.DataFrame:
    """Kernels launched within each range, and those launched in none.

    Within a range that holds another of its name, a kernel's time counts for both, though it is one kernel.
    """
    report = "nvtx_kern_sum"
    ranges = _on_one_thread(trace, report)
    work = _launched(trace, report, [KERNEL])
    pairs = _within(ranges, work)
    inside = pairs.join(ranges.select("range_id", "range", "style"), on="range_id", maintain_order="left")
    outside = work.join(pairs.select("work_id").unique(), on="work_id", how="anti")
    rows = pl.concat([inside, outside], how="diagonal").with_columns(pl.col("range").cast(pl.String))
    keys = ["range", "style", "pid", "tid", "name"]
    groups = rows.group_by(keys).agg(
        pl.col("range_id").drop_nulls().n_unique().alias("instances"),
        pl.col("work_id").n_unique().alias("kernels"),
        *spread(DURATION),
    )
    order = ["range", "style", "pid", "tid", "total", "name"]
    return (
        groups.with_columns(pl.col("name").cast(pl.String))
        .sort(order, descending=[key == "total" for key in order], nulls_last=False)
        .select(
            pl.col("range").alias("NVTX Range"),
            pl.col("style").alias("Style"),
            pl.col("pid").alias("PID"),
            pl.col("tid").alias("TID"),
            pl.col("instances").alias("NVTX Inst"),
            pl.col("kernels").alias("Kern Inst"),
            pl.col("total").alias("Total Time (ns)"),
            *titled(),
            pl.col("name").alias("Kernel Name"),
        )
    )


def nvtx_gpu_proj_sum(trace: Trace) -> pl.DataFrame:
    """Ranges projected onto the GPU: from the first work launched within them to the end of the last.

    Operations are launches: the nodes of one graph replay count once.
    """
    report = "nvtx_gpu_proj_sum"
    ranges = _on_one_thread(trace, report)
    work = _launched(trace, report, [KERNEL, MEMCPY, MEMSET])
    projected = (
        _within(ranges, work)
        .group_by("range_id")
        .agg(
            (pl.col("end_ns").max() - pl.col("start_ns").min()).alias("projected_ns"),
            pl.col("api_id").n_unique().alias("operations"),
        )
    )
    rows = _nested(ranges.join(projected, on="range_id", maintain_order="left")).with_columns(
        pl.col("range").cast(pl.String)
    )
    groups = rows.group_by("range", "style").agg(
        *spread("projected_ns"),
        pl.col(DURATION).sum().alias("range_total"),
        pl.col("operations").sum().alias("operations"),
        pl.col("level").mean().alias("level"),
        pl.col("children").mean().alias("children"),
    )
    return groups.sort(["total", "range", "style"], descending=[True, False, False]).select(
        pl.col("range").alias("Range"),
        pl.col("style").alias("Style"),
        pl.col("total").alias("Total Proj Time (ns)"),
        pl.col("range_total").alias("Total Range Time (ns)"),
        pl.col("count").alias("Range Instances"),
        *titled("", "Proj "),
        pl.col("operations").alias("Total GPU Ops"),
        rounded(pl.col("operations") / pl.col("count")).alias("Avg GPU Ops"),
        rounded(pl.col("level")).alias("Avg Range Lvl"),
        rounded(pl.col("children")).alias("Avg Num Child"),
    )


def _on_one_thread(trace: Trace, report: str) -> pl.DataFrame:
    """Ranges that the same thread began and ended, numbered as ``range_id``."""
    ends_here = pl.col("end_thread").is_null() | (pl.col("end_thread") == pl.col("thread"))
    return named_ranges(trace, report).filter(ends_here).with_row_index("range_id")


def _launched(trace: Trace, report: str, kinds: list[str]) -> pl.DataFrame:
    """GPU work of these kinds whose launch was recorded, with the launch's thread and time, in order of launch."""
    calls = trace.api.stored.with_row_index("api_id").select(
        pl.col("api_id").cast(pl.UInt32), "thread", pl.col("start_ns").alias("launch_ns")
    )
    rows = (
        trace.gpu.stored.filter(pl.col("kind").cast(pl.String).is_in(kinds))
        .select("name", "start_ns", "end_ns", "api_id", WITH_DURATION)
        .join(calls, on="api_id", maintain_order="left")
        .join(thread_ids(trace), on="thread", how="left", maintain_order="left")
        .sort("thread", "launch_ns", maintain_order=True)
    )
    require(rows, report, "GPU work whose launch was recorded", "record CUDA together with the ranges")
    return rows.with_row_index("work_id")


def _within(ranges: pl.DataFrame, work: pl.DataFrame) -> pl.DataFrame:
    """Every pair of a range and work launched within it: the work's row with ``range_id``.

    On one thread the launches within a range follow each other, so that two searches find them all.
    """
    begin = _position(work, ranges["thread"], ranges["start_ns"], "left")
    end = _position(work, ranges["thread"], ranges["end_ns"], "right")
    counts = np.maximum(end - begin, 0)
    which_range = np.repeat(ranges["range_id"].to_numpy(), counts)
    offset = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    which_work = np.repeat(begin, counts) + offset
    found: pl.DataFrame = work[which_work]
    return found.with_columns(pl.Series("range_id", which_range, pl.UInt32))


def _position(work: pl.DataFrame, threads: pl.Series, times: pl.Series, side: Literal["left", "right"]) -> Int64s:
    """Where these (thread, time) would stand among the launches, which are sorted by thread and time."""
    lanes, moments = work["thread"].to_numpy(), work["launch_ns"].to_numpy()
    wanted_lanes, wanted = threads.to_numpy(), times.to_numpy()
    found = np.zeros(len(wanted), np.int64)
    for lane, rows in grouped(np.arange(len(wanted)), wanted_lanes):
        first, last = np.searchsorted(lanes, lane, "left"), np.searchsorted(lanes, lane, "right")
        found[rows] = first + np.searchsorted(moments[first:last], wanted[rows], side)
    return found


def _nested(ranges: pl.DataFrame) -> pl.DataFrame:
    """Ranges with ``level``, the number of ranges around each, and ``children``, the number directly within."""
    lanes, starts, ends = (ranges[name].cast(pl.Int64).to_numpy() for name in ("thread", "start_ns", "end_ns"))
    order = order_for_nesting(lanes, starts, ends)
    found = nest(lanes[order], starts[order], ends[order])
    inner = found.parents[found.parents != NONE]
    children = np.bincount(inner, minlength=len(order)).astype(np.int64)
    return ranges[order].with_columns(pl.Series("level", found.depths), pl.Series("children", children))
