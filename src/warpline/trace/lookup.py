"""Rows found by a key of whole numbers: what a join does, without a hash where the keys are nearly dense."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from warpline.trace.arrays import NONE, Int64s

SPARSEST = 8
"""Keys that span at most so many times their number are looked up in a table; profilers count their ids up."""


class Lookup(Struct, frozen=True):
    """The row of each key; of several rows with one key, the first or the last."""

    _least: int
    _rows: Int64s
    """Dense: row of each key from the least on, and NONE at the end. Sparse: the rows, sorted by key."""
    _keys: Int64s | None
    """Sparse: the keys, sorted, each once."""

    @classmethod
    def first(cls, keys: Int64s, rows: Int64s) -> Lookup:
        """Where a key comes more than once, its first row counts."""
        return cls.last(keys[::-1], rows[::-1])

    @classmethod
    def last(cls, keys: Int64s, rows: Int64s) -> Lookup:
        """Where a key comes more than once, its last row counts."""
        if not len(keys):
            return cls(0, np.full(1, NONE, np.int64), None)
        least, most = int(keys.min()), int(keys.max())
        if most - least < SPARSEST * len(keys):
            table = np.full(most - least + 2, NONE, np.int64)
            table[keys - least] = rows  # of equal places the last one written stays
            return cls(least, table, None)
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
        ends = np.append(ordered[1:] != ordered[:-1], True)
        return cls(least, rows[order[ends]], ordered[ends])

    def find(self, keys: Int64s) -> Int64s:
        """The row of each key, or NONE."""
        if self._keys is not None:
            places = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
            return np.where(self._keys[places] == keys, self._rows[places], NONE)
        beyond = len(self._rows) - 1
        known = (keys >= self._least) & (keys < self._least + beyond)
        found: Int64s = self._rows[np.where(known, keys - self._least, beyond)]
        return found


def pair_keys(first: Int64s, second: Int64s, asked_first: Int64s, asked_second: Int64s) -> tuple[Int64s, Int64s]:
    """Two columns as one key, for the rows and for those who ask; NONE, which no row has, where there is no answer."""
    values = np.unique(first)
    if len(values) == 1 and (second >= 0).all():
        return second, np.where(asked_first == values[0], asked_second, NONE)
    numbers = np.unique(second)
    outer, inner = _place(values, asked_first), _place(numbers, asked_second)
    asked = np.where((outer == NONE) | (inner == NONE), NONE, outer * len(numbers) + inner)
    return _place(values, first) * len(numbers) + _place(numbers, second), asked


def _place(values: Int64s, asked: Int64s) -> Int64s:
    """Position of each in the sorted values, or NONE."""
    if not len(values):
        return np.full(len(asked), NONE, np.int64)
    places = np.minimum(np.searchsorted(values, asked), len(values) - 1)
    return np.where(values[places] == asked, places, NONE)
