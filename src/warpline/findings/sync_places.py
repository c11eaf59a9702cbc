"""Where the CPU waits, and the time recoverable by not waiting there: often much less than the blocked time."""

from __future__ import annotations

import numpy as np
import polars as pl

from warpline.analyses.syncs import sync_points
from warpline.fixes.evidence import Evidence
from warpline.trace.trace import Trace

REPLAYED = 12
"""Places whose recoverable time is replayed: those that block longest."""


def sync_places(trace: Trace, evidence: Evidence | None) -> pl.DataFrame:
    """The places of `sync_points` per step, those that block longest first; `returned_ns` is null where nothing was
    replayed."""
    replayed = evidence.trace if evidence else trace
    points, steps = sync_points(replayed), max(len(replayed.steps_in_view), 1)
    returned: list[int | None] = [None] * len(points)
    if evidence is not None:
        question = evidence.question
        # A blocking copy and the wait after it, in one op, are recoverable only together.
        spots = list(points.select("op", "file", "line").iter_rows())
        for place, spot in enumerate(spots[:REPLAYED]):
            same = [other for other, also in enumerate(spots) if also == spot] if spot[0] else [place]
            calls = points["calls"][same].explode().to_numpy().astype(np.int64)
            returned[place] = max(0, round(question.bare.estimated_ns - question.without_waits_ns(calls)))
    return points.select(
        "kind",
        "call",
        "op",
        "written",
        (pl.col("count") / steps).alias("count"),
        (pl.col("blocked_ns") / steps).round().cast(pl.Int64).alias("blocked_ns"),
        pl.Series("returned_ns", returned, dtype=pl.Int64),
        "file",
        "line",
        "function",
        "line_is",
    )
