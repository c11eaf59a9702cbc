"""The kernels with the longest total time: count, duration and spread."""

from __future__ import annotations

import numpy as np
import polars as pl

from warpline.kernels import identify
from warpline.trace.names import rows_like
from warpline.trace.trace import Trace


def in_window(table: pl.DataFrame, trace: Trace) -> pl.DataFrame:
    """The rows that begin within the trace's window."""
    if trace.chosen_steps is None:
        return table
    window = trace.window
    return table.filter(pl.col("start_ns") >= window.start_ns, pl.col("start_ns") < window.end_ns)


def spread(length: pl.Expr) -> dict[str, pl.Expr]:
    """Count, sum, mean, median, extremes and (sample) standard deviation of a duration."""
    return {
        "count": pl.len(),
        "total_ns": length.sum(),
        "mean_ns": length.mean(),
        "median_ns": length.median(),
        "min_ns": length.min(),
        "max_ns": length.max(),
        "std_ns": length.std().fill_null(0.0),
    }


def top_kernels(trace: Trace, count: int | None = None) -> pl.DataFrame:
    """Kernels (and graph replays) by total time, their share of the time of all kernels, and what their names show."""
    kernels = np.flatnonzero(rows_like(trace.stored("gpu"), "^(kernel|graph)$", "kind"))
    table = (
        in_window(trace.stored("gpu")[["name", "start_ns", "end_ns"]][kernels], trace)
        .group_by("name")
        .agg(**spread(pl.col("end_ns") - pl.col("start_ns")))
        .with_columns(
            pl.col("name").cast(pl.String),
            share=pl.col("total_ns") / pl.col("total_ns").sum().clip(lower_bound=1),  # all may be of zero length
        )
    )
    order = ["total_ns", "name"]
    some = table if count is None else table.top_k(count, by=order, reverse=[False, True])  # without sorting all names
    listed = some.sort(order, descending=[True, False])
    identities = [identify(name) for name in listed["name"]]
    return listed.with_columns(
        pl.Series("class", [identity.kernel_class for identity in identities], dtype=pl.String),
        pl.Series("tensor_core", [identity.tensor_core for identity in identities], dtype=pl.Boolean),
        pl.Series("dtype", [identity.dtype.a for identity in identities], dtype=pl.String),
    )
