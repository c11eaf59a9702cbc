"""Converts columns of DataFrames to NumPy arrays and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Hashes = npt.NDArray[np.uint64]
Texts = npt.NDArray[np.object_]

NONE = -1
"""Stands for "no row" in index arrays. An array that is indexed with it has one more element for it at its end."""
FIBONACCI = np.uint64(0x9E3779B97F4A7C15)
"""Multiplier of Fibonacci hashing: an odd number with well-mixed bits."""
_FALSE = pl.Series([False])


def integers(column: pl.Series, missing: int = NONE) -> Int64s:
    """A column as int64, nulls replaced."""
    if not column.null_count():
        return column.to_numpy().astype(np.int64, copy=False)
    whole = column if column.dtype.is_integer() else column.cast(pl.Int64)
    # `fill_null`, `is_not_null` and `cast` take several times as long on the short columns of a few steps.
    present = whole == whole  # noqa: PLR0124 - null where the value is
    values = whole.zip_with(present, pl.Series([0], dtype=whole.dtype)).to_numpy().astype(np.int64)
    values[~present.zip_with(present, _FALSE).to_numpy()] = missing
    return values


def grouped(rows: Int64s, keys: Int64s) -> Iterator[tuple[int, Int64s]]:
    """Each key, in ascending order, with its rows in the order given; every row is touched once however many keys."""
    if not len(rows):
        return
    order = np.argsort(keys, kind="stable")
    bounds = np.flatnonzero(np.diff(keys[order])) + 1
    for first, beyond in pairwise([0, *bounds.tolist(), len(order)]):
        yield int(keys[order[first]]), rows[order[first:beyond]]


def first_known(column: pl.Series) -> Any:
    """The first value of a short column that is not null; None if all are."""
    return next((value for value in column.to_list() if value is not None), None)


def combinations(*columns: Int64s) -> tuple[Int64s, Int64s]:
    """A row of each combination of the columns' values, in ascending order, and for every row which combination it has.
    NumPy's `unique` along an axis takes fifteen times as long, or more."""
    order = np.lexsort(columns[::-1])
    begins = np.zeros(len(order), bool)
    begins[:1] = True
    for column in columns:
        ordered = column[order]
        begins[1:] |= ordered[1:] != ordered[:-1]
    which = np.empty(len(order), np.int64)
    which[order] = np.cumsum(begins) - 1
    return order[begins], which


def last_match(keys: Sequence[Int64s], asked: Sequence[Int64s]) -> Int64s:
    """For each row of the asked columns, the last row that has the same values in the key columns, or NONE."""
    count = len(keys[0])
    which = combinations(*(np.append(key, wanted) for key, wanted in zip(keys, asked, strict=True)))[1]
    row = np.full(len(which), NONE)
    row[which[:count]] = np.arange(count)  # of rows with the same number, the last one stays
    return row[which[count:]]


def hashed(*columns: Int64s) -> Hashes:
    """A number for each row: the same for rows with the same values in all columns, and practically never for others.
    Linear in the rows, where `combinations` sorts them."""
    result = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        result = (result ^ (column + 1).astype(np.uint64)) * FIBONACCI
        result ^= result >> np.uint64(29)
    return result


def ids(values: Int64s) -> pl.Series:
    """An index array as a column: NONE becomes null."""
    missing = values < 0
    numbers = pl.Series(values.astype(np.uint32))
    return numbers.set(pl.Series(missing), None) if missing.any() else numbers
