"""Copies and memsets: how much moved, between which memories, how fast."""

from __future__ import annotations

import polars as pl

from warpline.analyses.kernels import in_window
from warpline.trace.names import named_like
from warpline.trace.trace import Trace

_KEYS = ("name", "kind", "copy_kind", "source_memory", "target_memory")


def copies(trace: Trace) -> pl.DataFrame:
    """Copies and memsets by name (direction and memory kinds), with bytes and achieved bandwidth.

    Bytes and bandwidth count only operations whose size is recorded; they are null where none is.
    """
    length = pl.col("end_ns") - pl.col("start_ns")
    sized = pl.col("bytes").is_not_null()
    return (
        in_window(named_like(trace.stored("gpu"), "^(memcpy|memset)$", "kind"), trace)
        .lazy()
        .group_by(_KEYS)
        .agg(
            count=pl.len(),
            total_ns=length.sum(),
            bytes=pl.when(sized.any()).then(pl.col("bytes").sum()),
            sized_ns=length.filter(sized).sum(),
            largest_bytes=pl.col("bytes").max(),
        )
        .with_columns(
            pl.col(_KEYS).cast(pl.String),
            bytes_per_second=pl.when(pl.col("sized_ns") > 0).then(pl.col("bytes") / pl.col("sized_ns") * 1e9),
        )
        .drop("sized_ns")
        .sort("total_ns", *_KEYS, descending=[True, *[False] * len(_KEYS)])
        .collect()
    )
