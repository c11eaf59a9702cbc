"""Queries on interned names, evaluated once per distinct name instead of once per row.

`names_in` keeps what it found in a table for as long as the table lives, because many analyses ask the same of the few
steps that are judged.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache
from weakref import ref

import numpy as np
import polars as pl

from warpline.trace.arrays import Bools, Int64s, Texts, integers
from warpline.trace.schema import MIGRATION

KEPT_ROWS = 1_000_000
"""Of longer tables nothing is kept: it would take as much memory as the columns themselves."""
FEW_NAMES, KEPT_ANSWERS, KEPT_PATTERNS = 300, 1000, 256
"""The names of a short list are mostly those of another table before: the answer for each is kept."""


class Names:
    """The names in a categorical column. Arrays are shared, and not to be changed."""

    def __init__(self, column: pl.Series, codes: pl.Series | None = None) -> None:
        self.names, self.which = distinct(column, codes)
        self.which.setflags(write=False)
        self._like: dict[str, Bools] = {}

    def matching(self, pattern: str) -> Bools:
        """Which distinct names match a regular expression, and at the end null, which does not."""
        few = len(self.names) <= FEW_NAMES
        return np.append(_answers(self.words, pattern) if few else self.names.str.contains(pattern).to_numpy(), False)

    def like(self, pattern: str) -> Bools:
        """Which rows match a regular expression; null does not."""
        if pattern not in self._like:
            found = self.matching(pattern)
            self._like[pattern] = found = found[self.which] if found.any() else np.zeros(len(self.which), bool)
            found.setflags(write=False)
        return self._like[pattern]

    @cached_property
    def words(self) -> list[str]:
        """The distinct names as Python's strings; not to be changed."""
        return self.names.to_list()

    @cached_property
    def texts(self) -> Texts:
        """The names as Python's strings, equal ones being the same object; empty for null."""
        result: Texts = np.array([*self.words, ""], object)[self.which]
        result.setflags(write=False)
        return result


@lru_cache(KEPT_PATTERNS)
def _known(pattern: str) -> list[dict[str, bool]]:
    """Whether names match a pattern, in a list so that another dictionary can take its place."""
    return [{}]


def _answers(names: list[str], pattern: str) -> Bools:
    """Which names match; a query of Polars takes longer than all else here, so only new names are looked at."""
    kept = _known(pattern)
    known = kept[0]
    new = [name for name in names if name not in known]
    if new:
        if len(known) + len(new) > KEPT_ANSWERS:
            new, known = names, {}  # another thread may still read the old one
            kept[0] = known
        known.update(zip(new, pl.Series(new, dtype=pl.String).str.contains(pattern).to_list(), strict=True))
    return np.fromiter((known[name] for name in names), np.bool_, len(names))


_kept: dict[int, tuple[ref[pl.DataFrame], pl.DataFrame, dict[str, Names]]] = {}
"""By the identity of a table, which is that of another one once the table is gone."""


def names_in(table: pl.DataFrame, column: str = "name") -> Names:
    """The names in a column of a table; found once, unless the table is long."""
    if len(table) > KEPT_ROWS:
        return Names(table[column])
    key = id(table)
    known = _kept.get(key)
    if known is None or known[0]() is not table:
        codes = table.select(pl.col(pl.Categorical).to_physical())  # one query for all columns
        known = _kept[key] = (ref(table, lambda gone: _forget(key, gone)), codes, {})
    _, codes, found = known
    if column not in found:
        found[column] = Names(table[column], codes[column])
    return found[column]


def _forget(key: int, gone: ref[pl.DataFrame]) -> None:
    if key in _kept and _kept[key][0] is gone:
        del _kept[key]


def rows_like(table: pl.DataFrame, pattern: str, column: str = "name") -> Bools:
    """Which rows of a table have a name that matches a regular expression; not to be changed."""
    return names_in(table, column).like(pattern)


def named_like(table: pl.DataFrame, pattern: str, column: str = "name") -> pl.DataFrame:
    """The rows of a table whose name matches."""
    found = rows_like(table, pattern, column)
    return table.filter(found) if found.any() else table.head(0)


def matches(column: pl.Series, pattern: str) -> pl.Series:
    """Which rows of a categorical column match a regular expression; null does not."""
    return pl.Series(column.name, Names(column).like(pattern))


def named(pattern: str, column: str = "name") -> pl.Expr:
    """The same as an expression."""
    return pl.col(column).map_batches(lambda series: matches(series, pattern), return_dtype=pl.Boolean)


def is_migration() -> pl.Expr:
    """Rows of ``gpu`` that are migrations."""
    return named(MIGRATION, "copy_kind")


def by_name(column: pl.Series, answer: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """A function of names, given for each row: `answer` sees every distinct name once."""
    names, which = distinct(column)
    return answer(names).extend_constant(None, 1).gather(which)


def texts(column: pl.Series) -> Texts:
    """A categorical column as Python's strings, equal ones being the same object; empty for null."""
    return spelled(*distinct(column))


def spelled(names: pl.Series, which: Int64s) -> Texts:
    """The same of what `distinct` gives."""
    result: Texts = np.append(names.to_numpy(), "").astype(object)[which]
    return result


def distinct(column: pl.Series, codes: pl.Series | None = None) -> tuple[pl.Series, Int64s]:
    """The names in a categorical column, and for each row which of them it has; the number beyond for null."""
    if not len(column):
        return column.cast(pl.String), np.empty(0, np.int64)
    codes = column.to_physical() if codes is None else codes
    beyond = int(codes.max() or 0) + 1  # type: ignore[arg-type]
    # Arrays are indexed several times faster with int64 than with anything else.
    code = integers(codes, beyond)
    row_of = np.full(beyond + 1, len(column), np.uint32)
    row_of[code] = np.arange(len(column), dtype=np.uint32)
    present = np.flatnonzero(row_of[:beyond] < len(column))
    number = np.full(beyond + 1, len(present), np.int64)
    number[present] = np.arange(len(present))
    # `gather` would take five times as long on the few names of a trace.
    return column[row_of[present]].cast(pl.String), number[code]
