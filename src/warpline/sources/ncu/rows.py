"""Metrics of a raw page: one array of numbers per kernel over names and units that all kernels share."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping

from msgspec import Struct

from warpline.sources.ncu.model import Reading


class Columns(Struct, frozen=True):
    """The metric columns of a raw page."""

    places: Mapping[str, int]
    units: tuple[str, ...]


class RowMetrics(Mapping[str, Reading]):
    """The metrics of one row, as a mapping; a raw page has thousands of columns, and most are never looked at."""

    __slots__ = ("_columns", "_numbers", "_words")

    def __init__(self, columns: Columns, numbers: array[float], words: dict[str, str]) -> None:
        self._columns = columns
        self._numbers = numbers
        self._words = words

    def __getitem__(self, name: str) -> Reading:
        place = self._columns.places[name]
        value: float | str = self._numbers[place]
        if math.isnan(self._numbers[place]):
            value = self._words[name]
        return Reading(value, self._columns.units[place])

    def __iter__(self) -> Iterator[str]:
        for name, place in self._columns.places.items():
            if name in self._words or not math.isnan(self._numbers[place]):
                yield name

    def __len__(self) -> int:
        return sum(1 for _ in self)
