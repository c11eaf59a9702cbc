"""Columns of some of a Kineto file's events, taken out of the whole file's and made into polars series."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from warpline.sources.kineto.events import MISSING, Int64s, RawEvents, Sparse

Rowset = npt.NDArray[np.int64]
Number = TypeVar("Number", bound=np.integer)
Mask = npt.NDArray[np.bool_]


class FileEvents:
    """A file's events, with its names and texts interned once for all tables."""

    def __init__(self, raw: RawEvents, zero_ns: int) -> None:
        self.raw = raw
        self.zero_ns = zero_ns
        self.spelled = pl.Series(raw.names, dtype=pl.String)
        self.names = self.spelled.cast(pl.Categorical)
        self.texts = pl.Series(raw.texts, dtype=pl.String).cast(pl.Categorical)

    def select(self, wanted: Mask) -> Selection:
        """The events for which the mask is true."""
        return Selection(self, np.flatnonzero(wanted))

    def named(self, wanted: Mask, pattern: str) -> tuple[Selection, Selection]:
        """The events for which the mask is true whose name matches, and the others; each distinct name is looked at
        once."""
        rows = np.flatnonzero(wanted)
        matching = self.spelled.str.contains(pattern).to_numpy()
        found = np.append(matching, False).take(self.raw.name.take(rows))
        return Selection(self, rows[found]), Selection(self, rows if not found.any() else rows[~found])


class Selection:
    """Some of the events; each method gives one column, in their order."""

    def __init__(self, source: FileEvents, rows: Rowset) -> None:
        self._source = source
        self._raw = source.raw
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def after(self, other: Selection) -> Selection:
        """Those events, then these."""
        return Selection(self._source, np.append(other.rows, self.rows))

    def joined(self, other: Selection) -> Selection:
        """These events and those, in the file's order."""
        return Selection(self._source, np.sort(np.append(self.rows, other.rows))) if len(other) else self

    def take(self, column: npt.NDArray[Number]) -> npt.NDArray[Number]:
        """A column's values for these events."""
        return column.take(self.rows)

    @cached_property
    def span(self) -> dict[str, pl.Series]:
        """Start and end relative to the start of the trace; a negative duration counts as zero."""
        start = self.take(self._raw.time_ns)
        start -= self._source.zero_ns
        length = self.take(self._raw.duration_ns)
        np.maximum(length, 0, out=length)
        return {"start_ns": pl.Series(start), "end_ns": pl.Series(np.add(start, length, out=length))}

    def time(self) -> pl.Series:
        """The moment of an instant event."""
        return self.span["start_ns"]

    def name(self, without: str = "") -> pl.Series:
        """The events' names; without what matches this pattern."""
        if without and self._source.spelled.str.contains(without).any():
            found = self.from_name(lambda names: names.str.replace(without, ""))
            if found is not None:
                return found
        return gathered(self._source.names, self.take(self._raw.name))

    def from_name(self, find: Callable[[pl.Series], pl.Series], first: int = 0) -> pl.Series | None:
        """What is found in each name, from the event at position `first` on; null before, None if there is no such
        event. Each distinct name is looked at once."""
        if first >= len(self.rows):
            return None
        present, which = np.unique(self._raw.name.take(self.rows[first:]), return_inverse=True)
        found = find(gathered(self._source.spelled, present)).cast(pl.Categorical)
        return gathered(found, np.append(np.full(first, -1), which))

    def constant(self, word: str) -> pl.Series:
        """A column with the same word in every row."""
        return pl.Series([word]).cast(pl.Categorical).new_from_index(0, len(self.rows))

    @cached_property
    def arguments(self) -> dict[str, pl.Series]:
        """Where the raw arguments lie in the file."""
        offset = self.take(self._raw.args_offset)
        length = pl.Series(self.take(self._raw.args_length))
        if len(offset) and offset.min() >= 0:
            return {"args_offset": pl.Series(offset), "args_length": length}
        present = pl.Series(offset >= 0)
        return {"args_offset": pl.Series(offset).set(~present, None), "args_length": length.set(~present, None)}

    def integer(self, *keys: str) -> pl.Series | None:
        """The argument under the first of these names that each event has; None if no event has one."""
        fields = [field for key in keys if (field := self._raw.fields.get(key)) is not None and len(field.rows)]
        if not fields:
            return None
        if len(fields) == 1 and self._has_all(fields[0]):
            return pl.Series(fields[0].values.copy())  # a copy: the scanner's memory must not stay for one column
        values = np.full(len(self.rows), MISSING, np.int64)
        found = [self._scatter(field, values) for field in reversed(fields)]
        return nullable(values) if any(found) else None

    def small(self, *keys: str) -> pl.Series | None:
        """The same as 32-bit integers; larger values, which only damaged files have, become null."""
        values = self.integer(*keys)
        return None if values is None else values.cast(pl.Int32, strict=False)

    def triple(self, key: str) -> dict[str, pl.Series]:
        """A grid or block as three columns; none if no event has one. No other events have it: its memory is freed."""
        field = self._raw.fields.pop(key, None)
        columns: dict[str, pl.Series] = {}
        if field is None or not len(field.rows):
            return columns
        for axis, letter in enumerate("xyz"):
            values = np.full(len(self.rows), MISSING, np.int64)
            if self._scatter(Sparse(field.rows, field.values[:, axis]), values):
                columns[f"{key}_{letter}"] = nullable(values).cast(pl.Int32, strict=False)
        return columns

    def text(self, key: str) -> pl.Series | None:
        """An argument as its raw JSON text; None if no event has it."""
        field = self._raw.fields.get(key)
        if field is None or not len(field.rows):
            return None
        if self._has_all(field):
            return gathered(self._source.texts, field.values)
        codes = np.full(len(self.rows), -1, np.int64)
        return gathered(self._source.texts, codes) if self._scatter(field, codes) else None

    def label(self, codes: npt.NDArray[np.int32]) -> pl.Series:
        """Process or thread ids of the events as numbers, where they are numbers."""
        words = [label.strip('"').removeprefix("stream ") for label in self._raw.labels]
        return gathered(pl.Series(words, dtype=pl.String).cast(pl.Int64, strict=False), codes.take(self.rows))

    @cached_property
    def _slots(self) -> npt.NDArray[np.int32]:
        """Position of each of the file's events among ours, or -1."""
        slots = np.full(len(self._raw), -1, np.int32)
        slots[self.rows] = np.arange(len(self.rows), dtype=np.int32)
        return slots

    def _has_all(self, field: Sparse) -> bool:
        """Whether exactly these events have the argument: then its values are the column."""
        return len(field.rows) == len(self.rows) and self._begins_with(field)

    def _begins_with(self, field: Sparse) -> bool:
        return bool((field.rows == self.rows[: len(field.rows)]).all())

    def _scatter(self, field: Sparse, values: Int64s) -> bool:
        """Write the values of our events that have the argument; whether there are any."""
        count = len(field.rows)
        if not len(self.rows) or not count:
            return False
        if count <= len(self.rows) and field.rows[-1] == self.rows[count - 1] and self._begins_with(field):
            values[:count] = field.values
            return True
        first, beyond = np.searchsorted(field.rows, [self.rows.min(), self.rows.max() + 1])
        slots = self._slots.take(field.rows[first:beyond])
        ours = np.flatnonzero(slots >= 0)
        values[slots.take(ours)] = field.values[first:beyond].take(ours)
        return len(ours) > 0


def one_after_the_other(parts: dict[str, Selection]) -> tuple[Selection, pl.Series]:
    """All parts as one selection, and for each event the name of its part."""
    whole, *others = parts.values()
    for other in others:
        whole = other.after(whole)
    words = pl.Series(list(parts)).cast(pl.Categorical)
    codes = np.repeat(np.arange(len(parts), dtype=np.int32), [len(part) for part in parts.values()])
    return whole, gathered(words, codes)


def gathered(values: pl.Series, codes: npt.NDArray[np.integer]) -> pl.Series:
    """The values for the codes; negative codes are null."""
    if not len(codes) or codes.min() >= 0:
        return values[codes.astype(np.uint32, copy=False)]
    index = pl.Series(codes.astype(np.int64))
    return values.gather(index.set(index < 0, None).cast(pl.UInt32))


def nullable(values: Int64s) -> pl.Series:
    """MISSING becomes null."""
    series = pl.Series(values)
    missing = values == MISSING
    return series.set(pl.Series(missing), None) if missing.any() else series
