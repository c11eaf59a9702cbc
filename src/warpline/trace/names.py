"""Queries on interned names, evaluated once per distinct name instead of once per row."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import polars as pl

from warpline.trace.columns import Int64s, integers

Texts = npt.NDArray[np.object_]


def matches(column: pl.Series, pattern: str) -> pl.Series:
    """Which rows of a categorical column match a regular expression; null does not."""
    if not len(column):
        return pl.Series(column.name, dtype=pl.Boolean)
    names, which = distinct(column)
    found = np.append(names.str.contains(pattern).to_numpy(), False)
    return pl.Series(column.name, found[which])


def named(pattern: str, column: str = "name") -> pl.Expr:
    """The same as an expression."""
    return pl.col(column).map_batches(lambda series: matches(series, pattern), return_dtype=pl.Boolean)


def is_migration() -> pl.Expr:
    """Rows of ``gpu`` in which pages of unified memory move by themselves: no call launches them, and no stream orders
    them."""
    return named("^Unified", "copy_kind")


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


def distinct(column: pl.Series) -> tuple[pl.Series, Int64s]:
    """The names in a categorical column, and for each row which of them it has; the number beyond for null."""
    if not len(column):
        return column.cast(pl.String), np.empty(0, np.int64)
    codes = column.to_physical()
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
