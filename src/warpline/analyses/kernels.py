"""The kernels with the longest total time: count, duration and spread."""

from __future__ import annotations

import polars as pl

from warpline.analyses.steps import in_view
from warpline.kernels import identify
from warpline.trace.trace import Trace


def top_kernels(trace: Trace, count: int | None = None) -> pl.DataFrame:
    """Kernels (and graph replays) by total time, their share of the time of all kernels, and what their names show."""
    kernels = trace.gpu[trace.gpu.kind.equal("kernel", "graph") & in_view(trace, trace.gpu.start_ns)]
    length = pl.col("length")
    table = (
        pl.DataFrame({"name": kernels.name.series(), "length": kernels.end_ns - kernels.start_ns})
        .group_by("name")
        .agg(
            count=pl.len(),
            total_ns=length.sum(),
            mean_ns=length.mean(),
            median_ns=length.median(),
            min_ns=length.min(),
            max_ns=length.max(),
            std_ns=length.std().fill_null(0.0),
        )
        .with_columns(
            share=pl.col("total_ns") / pl.col("total_ns").sum().clip(lower_bound=1)  # all may be of zero length
        )
    )
    listed = table.sort("total_ns", "name", descending=[True, False]).head(len(table) if count is None else count)
    identities = [identify(name) for name in listed["name"]]
    return listed.with_columns(
        pl.Series("class", [identity.kernel_class for identity in identities], dtype=pl.String),
        pl.Series("tensor_core", [identity.tensor_core for identity in identities], dtype=pl.Boolean),
        pl.Series("dtype", [identity.dtype.a for identity in identities], dtype=pl.String),
    )
