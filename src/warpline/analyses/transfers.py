"""Copies and memsets: how much moved, between which memories, how fast."""

from __future__ import annotations

import polars as pl

from warpline.analyses.steps import in_view
from warpline.trace.arrays import NONE
from warpline.trace.trace import Trace

_KEYS = ("name", "kind", "copy_kind", "source_memory", "target_memory")


def copies(trace: Trace) -> pl.DataFrame:
    """Copies and memsets by name (direction and memory kinds), with bytes and achieved bandwidth.

    Bytes and bandwidth count only operations whose size is recorded; they are null where none is.
    """
    moved = trace.gpu[trace.gpu.kind.equal("memcpy", "memset") & in_view(trace, trace.gpu.start_ns)]
    table = pl.DataFrame(
        {
            **{key: moved.column(key).series() for key in _KEYS},
            "length": moved.end_ns - moved.start_ns,
            "size": moved.bytes,
        }
    )
    length, sized = pl.col("length"), pl.col("size") != NONE
    return (
        table.group_by(_KEYS)
        .agg(
            count=pl.len(),
            total_ns=length.sum(),
            bytes=pl.when(sized.any()).then(pl.col("size").filter(sized).sum()),
            sized_ns=length.filter(sized).sum(),
            largest_bytes=pl.col("size").filter(sized).max(),
        )
        .with_columns(bytes_per_second=pl.when(pl.col("sized_ns") > 0).then(pl.col("bytes") / pl.col("sized_ns") * 1e9))
        .drop("sized_ns")
        .sort("total_ns", *_KEYS, descending=[True, *[False] * len(_KEYS)])
    )
