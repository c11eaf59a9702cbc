"""Arrays of whole numbers: groups and their counts, sums and extremes, combinations and matches of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Hashes = npt.NDArray[np.uint64]
Texts = npt.NDArray[np.object_]

NONE = -1
"""Stands for "no row" in index arrays. An array that is indexed with it has one more element for it at its end."""
NEVER = int(np.iinfo(np.int64).max) // 4
LONG_AGO = -NEVER
"""Moments after and before all of a trace; with other moments they can be added and subtracted."""
FIBONACCI = np.uint64(0x9E3779B97F4A7C15)
"""An odd number with well-mixed bits, the multiplier of Fibonacci hashing."""


def grouped(rows: Int64s, keys: Int64s) -> Iterator[tuple[int, Int64s]]:
    """Each key, in ascending order, with its rows in the order given; every row is touched once however many keys."""
    if not len(rows):
        return
    order = np.argsort(keys, kind="stable")
    bounds = np.flatnonzero(np.diff(keys[order])) + 1
    for first, beyond in pairwise([0, *bounds.tolist(), len(order)]):
        yield int(keys[order[first]]), rows[order[first:beyond]]


def least_of(groups: int, group: Int64s, values: Int64s) -> Int64s:
    """The least value of each of so many groups; NEVER for one without values. `group` is that of each value."""
    found = np.full(groups, NEVER)
    np.minimum.at(found, group, values)
    return found


def greatest_of(groups: int, group: Int64s, values: Int64s) -> Int64s:
    """The greatest value of each of so many groups; LONG_AGO for one without values."""
    found = np.full(groups, LONG_AGO)
    np.maximum.at(found, group, values)
    return found


def count_of(groups: int, group: Int64s) -> Int64s:
    """How many belong to each of so many groups; NONE is no group."""
    return np.bincount(group[group != NONE], minlength=groups)


def sum_of(groups: int, group: Int64s, values: Int64s | Floats) -> Floats:
    """The sum of each of so many groups; a value with the group NONE is left out."""
    known = group != NONE
    return np.bincount(group[known], values[known], groups).astype(np.float64)


def most_frequent(values: Int64s) -> int:
    """The value that occurs most often; NONE where all are NONE."""
    counts = np.bincount(values[values != NONE])
    return int(counts.argmax()) if len(counts) else NONE


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


def containing(starts: Int64s, ends: Int64s, moments: Int64s) -> Int64s:
    """The interval [start, end) in which each moment lies, by position, or NONE. Intervals are in order of time and do
    not overlap."""
    latest = np.searchsorted(starts, moments, side="right") - 1
    return np.where((latest >= 0) & (moments < np.append(ends, 0)[latest]), latest, NONE)


def hashed(*columns: Int64s) -> Hashes:
    """A number for each row: the same for rows with the same values in all columns, and practically never for others.
    Linear in the rows, where `combinations` sorts them."""
    result = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        result = (result ^ (column + 1).astype(np.uint64)) * FIBONACCI
        result ^= result >> np.uint64(29)
    return result
