"""Questions about interned names, answered once for each distinct name instead of once for each row."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl


def matches(column: pl.Series, pattern: str) -> pl.Series:
    """Which rows of a categorical column match a regular expression; null does not."""
    return by_name(column, lambda names: names.str.contains(pattern)).fill_null(False)


def named(pattern: str, column: str = "name") -> pl.Expr:
    """The same as an expression."""
    return pl.col(column).map_batches(lambda series: matches(series, pattern), return_dtype=pl.Boolean)


def is_migration() -> pl.Expr:
    """Rows of ``gpu`` in which pages of unified memory move by themselves: no call launches them, and no stream orders
    them."""
    return named("^Unified", "copy_kind")


def by_name(column: pl.Series, answer: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """A function of names, given for each row: `answer` sees every distinct name once."""
    distinct = column.unique().drop_nulls()
    if not len(distinct):
        return answer(pl.Series([], dtype=pl.String)).extend_constant(None, len(column))
    codes = distinct.to_physical().to_numpy()
    position = np.zeros(int(codes.max()) + 1, np.uint32)
    position[codes] = np.arange(len(distinct), dtype=np.uint32)
    rows = column.to_physical()
    index = pl.Series(position[rows.fill_null(int(codes[0])).to_numpy()]).set(rows.is_null(), None)
    return answer(distinct.cast(pl.String)).gather(index)
