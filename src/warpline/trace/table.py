"""A table of a trace: each column is a numpy array, made from the stored frame when it is first asked for.

Numbers are int64 with NONE where nothing was recorded, names are codes into a list of words. Arrays are shared and
read-only. Polars stays at the door: `stored` is what readers, the cache, `sql` and exports use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Generic, Self, TypeVar, overload

import numpy as np
import polars as pl
from polars.datatypes import DataTypeClass

from warpline.trace.arrays import NONE, Bools, Int64s, Texts
from warpline.trace.column_rules import NAME_CHARS, Bounds

T = TypeVar("T")
Values = TypeVar("Values", Int64s, Bools)
RowChoice = Int64s | Bools | slice
"""Some rows of a table: positions, a mask or a slice."""
Stored = pl.DataFrame | Callable[[], pl.DataFrame]
"""A table as it is stored: a frame, or what loads one."""


class TraceColumn(Generic[T]):
    """One column of a table: its type in the stored frame, its meaning, and which values are possible."""

    name: str

    def __init__(
        self,
        dtype: DataTypeClass,
        meaning: str,
        *,
        required: bool = False,
        bounds: Bounds | None = None,
        most_chars: int = NAME_CHARS,
    ) -> None:
        self.dtype, self.meaning = dtype, meaning
        self.required = required
        """Whether every row has a value."""
        self.bounds = bounds
        """The possible values of a number; others are null."""
        self.most_chars = most_chars
        """The longest possible text. A longer name is shortened, and `long_names` has it in full; longer arguments are
        null."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, table: None, owner: type) -> Self: ...
    @overload
    def __get__(self, table: TraceTable, owner: type) -> T: ...
    def __get__(self, table: TraceTable | None, owner: type) -> Self | T:
        return self if table is None else table.column(self.name)

    def array(self, stored: pl.Series) -> Any:
        """The stored column as analyses read it."""
        if self.dtype is pl.Categorical:
            return Names.of(stored)
        if self.dtype is pl.String:
            return stored.to_numpy()
        if self.dtype is pl.Float64:
            return stored.to_numpy()  # NaN for null
        values = stored.fill_null(0) if stored.null_count() else stored
        array = values.to_numpy().astype(np.int64, copy=False)
        if stored.null_count():
            array = np.where(stored.is_null().to_numpy(), NONE, array)
        array.setflags(write=False)
        return array

    def series(self, values: Int64s | Names) -> pl.Series:
        """A column of whole numbers or names as it is stored."""
        numbers = values.codes if isinstance(values, Names) else values
        missing = numbers == NONE
        stored = pl.Series(np.where(missing, 0, numbers)).cast(pl.UInt32 if isinstance(values, Names) else self.dtype)
        stored = stored.set(pl.Series(missing), None) if missing.any() else stored
        return pl.Series(values.words, dtype=pl.Categorical).gather(stored) if isinstance(values, Names) else stored


class TraceTable:
    """Rows of one kind. The subclasses in `warpline.trace.schema` name the columns."""

    columns: ClassVar[dict[str, TraceColumn[Any]]] = {}

    def __init_subclass__(cls) -> None:
        cls.columns = {name: value for name, value in vars(cls).items() if isinstance(value, TraceColumn)}
        listed = (f"- {name} ({column.dtype.__name__}): {column.meaning}" for name, column in cls.columns.items())
        cls.__doc__ = "\n".join([f"{cls.__doc__}\n", *listed])  # so that help() explains each column

    def __init__(self, stored: Stored) -> None:
        self._load = stored if callable(stored) else lambda: stored
        self._whole: tuple[TraceTable, RowChoice] | None = None
        """For some rows of another table, that table and which."""
        self._arrays: dict[str, Any] = {}

    @cached_property
    def stored(self) -> pl.DataFrame:
        """The rows as a frame of polars: names are categorical, what was not recorded is null."""
        return self._load()

    @cached_property
    def _length(self) -> int:
        if self._whole is None:
            return len(self.stored)
        table, rows = self._whole
        return len(range(len(table))[rows]) if isinstance(rows, slice) else len(rows)

    def __len__(self) -> int:
        return self._length

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self):,} rows>"

    def __getitem__(self, rows: RowChoice) -> Self:
        """Some of the rows: positions, a mask or a slice. A column is copied when it is asked for."""
        places = np.flatnonzero(rows) if isinstance(rows, np.ndarray) and rows.dtype == np.bool_ else rows
        chosen = type(self)(lambda: self.stored[places])
        chosen._whole = self, places
        return chosen

    def with_columns(self, columns: Mapping[str, Int64s | Names]) -> Self:
        """The same rows with other values in these columns."""
        other = self[:]
        other._arrays = dict(columns)
        other._load = lambda: self.stored.with_columns(
            self.columns[name].series(values).alias(name) for name, values in columns.items()
        )
        return other

    def column(self, name: str) -> Any:
        """A column by name; the same as the attribute of that name."""
        if name not in self._arrays:
            if self._whole is not None:
                table, rows = self._whole
                self._arrays[name] = table.column(name)[rows]
            else:
                self._arrays[name] = self.columns[name].array(self.stored[name])
        return self._arrays[name]


class Words:
    """A list of words, each once, and which of them match a pattern."""

    def __init__(self, words: list[str]) -> None:
        self.words = words
        self._like: dict[str, Bools] = {}

    def like(self, pattern: str) -> Bools:
        """Which words match a regular expression, and a trailing False for NONE.

        By polars' engine, whose time is linear in the text: names come from files of strangers.
        """
        if pattern not in self._like:
            found = pl.Series(self.words, dtype=pl.String).str.contains(pattern).to_numpy()
            self._like[pattern] = np.append(found, False)
        return self._like[pattern]


class Names:
    """A column of names: a code per row into `words`, NONE where nothing was recorded."""

    def __init__(self, vocabulary: Words, codes: Int64s) -> None:
        self._vocabulary = vocabulary
        self.codes = codes
        codes.setflags(write=False)

    @classmethod
    def of(cls, stored: pl.Series) -> Names:
        """The names of a categorical column."""
        physical = stored.to_physical()
        known = np.asarray(physical.drop_nulls().unique().sort().to_numpy(), np.int64)
        place = np.full(int(known[-1]) + 2 if len(known) else 1, NONE, np.int64)
        place[known] = np.arange(len(known))
        codes = place[physical.cast(pl.Int64).fill_null(NONE).to_numpy()]
        words = stored.gather(_first_rows(codes, len(known))).cast(pl.String).to_list()
        return cls(Words(words), codes)

    @classmethod
    def joined(cls, parts: Sequence[Names]) -> Names:
        """The names of several columns, one after the other."""
        numbers: dict[str, int] = {}
        codes = [part.numbers(lambda word: numbers.setdefault(word, len(numbers))) for part in parts]
        return cls(Words(list(numbers)), np.concatenate(codes))

    @property
    def words(self) -> list[str]:
        """Each name once; not to be changed. Of chosen rows some may be absent."""
        return self._vocabulary.words

    def __len__(self) -> int:
        return len(self.codes)

    def __repr__(self) -> str:
        return f"<Names: {len(self.codes):,} rows, {len(self.words):,} words>"

    def __getitem__(self, rows: RowChoice) -> Names:
        return Names(self._vocabulary, self.codes[rows])

    def at(self, rows: Int64s) -> Names:
        """The names of these rows, where NONE is no row and has no name."""
        return Names(self._vocabulary, np.append(self.codes, NONE)[rows])

    def renamed(self, name: Callable[[str], str | None]) -> Names:
        """The same rows under other names; those that become equal are one. None stands for no name."""
        numbers: dict[str | None, int] = {None: NONE}
        codes = self.numbers(lambda word: numbers.setdefault(name(word), len(numbers) - 1))
        return Names(Words([word for word in numbers if word is not None]), codes)

    def text(self, row: int) -> str | None:
        """The name of one row."""
        code = int(self.codes[row])
        return None if code == NONE else self.words[code]

    @cached_property
    def texts(self) -> Texts:
        """The names as Python's strings, equal ones being the same object; empty for NONE."""
        return np.array([*self.words, ""], object)[self.codes]

    def series(self) -> pl.Series:
        """The names as a column of a frame that is handed out; null for NONE."""
        return pl.Series([*self.words, None], dtype=pl.String).gather(filled(self.codes, len(self.words)))

    def like(self, pattern: str) -> Bools:
        """Which rows match a regular expression; NONE does not."""
        return self._vocabulary.like(pattern)[self.codes]

    def equal(self, *words: str) -> Bools:
        """Which rows have one of these names."""
        return self.where(set(words).__contains__)

    def where(self, test: Callable[[str], bool]) -> Bools:
        """Which rows have a name that passes; each name that they have is tested once. NONE does not pass."""
        return self._by_word(test, np.zeros(len(self.words) + 1, bool))

    def numbers(self, value: Callable[[str], int], missing: int = NONE) -> Int64s:
        """A number for each row, from its name; each name that they have is asked once."""
        return self._by_word(value, np.full(len(self.words) + 1, missing, np.int64))

    def _by_word(self, value: Callable[[str], int], values: Values) -> Values:
        """The values by word, and the last one for NONE, filled in for the words that occur."""
        values[self._present] = [value(word) for word in self.present()]
        return values[self.codes]

    def present(self) -> list[str]:
        """The names that these rows have."""
        words = self.words
        return [words[code] for code in self._present.tolist()]

    @cached_property
    def _present(self) -> Int64s:
        """The codes that these rows have, in ascending order."""
        return np.flatnonzero(np.bincount(self.codes[self.codes != NONE], minlength=len(self.words)))


def _first_rows(codes: Int64s, count: int) -> Int64s:
    """A row with each code."""
    rows = np.zeros(count, np.int64)
    known = np.flatnonzero(codes != NONE)
    rows[codes[known[::-1]]] = known[::-1]
    return rows


def filled(values: Int64s, value: int) -> Int64s:
    """The values, with another one for NONE."""
    return np.where(values == NONE, value, values)
