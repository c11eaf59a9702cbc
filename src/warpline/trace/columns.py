"""Columns of frames as NumPy arrays, and back: the only seam between the two."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

NONE = -1
"""Stands for "no row" in index arrays. An array that is indexed with it has one more element for it at its end."""


def integers(column: pl.Series, missing: int = NONE) -> Int64s:
    """A column as int64, nulls replaced."""
    whole = column if column.dtype == pl.Int64 else column.cast(pl.Int64)
    filled = whole.fill_null(missing) if whole.null_count() else whole
    return filled.to_numpy().astype(np.int64, copy=False)


def ids(values: Int64s) -> pl.Series:
    """An index array as a column: NONE becomes null."""
    series = pl.Series(values)
    return series.set(series < 0, None).cast(pl.UInt32)
