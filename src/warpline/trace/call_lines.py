"""The line that makes each Python call, where `warpline run` recorded it.

torch's trace names the first line of the function that is called. The file of a second pass has the calling lines, by
the moment at which the call began.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from warpline.trace.arrays import NONE, Int64s
from warpline.trace.trace import Trace


def call_lines(trace: Trace, lines: pl.DataFrame) -> Int64s:
    """For each row of `python`, the calling line in the file of its parent; NONE where it is not known.

    Calls that begin at the same nanosecond are told apart by their order, if they are as many.
    """
    rows = len(trace.python)
    result = np.full(rows, NONE, np.int64)
    if not rows or not len(lines):
        return result
    epoch = int(trace.facts.get("epoch_ns", "0"))
    begin = trace.python.start_ns + epoch
    mine = pl.DataFrame({"start_ns": begin, "row": np.arange(rows)}).with_columns(*_order())
    known = lines.with_columns(*_order())
    joined = mine.join(known, on=["start_ns", "at", "of"], how="inner", maintain_order="left")
    result[joined["row"].to_numpy()] = joined["line"].to_numpy()
    return result


def _order() -> tuple[pl.Expr, pl.Expr]:
    return pl.int_range(pl.len()).over("start_ns").alias("at"), pl.len().over("start_ns").alias("of")
