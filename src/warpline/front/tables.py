"""Tables for users: an `id` column to join on, and string columns that support `like` and `.str`.

The analyses use categorical columns, whose codes are small and fast to compare. These are the same tables with
strings instead; equal strings share their bytes, so a row costs 16 bytes per column.
"""

from __future__ import annotations

import polars as pl
from msgspec import Struct
from polars.datatypes import DataTypeClass

from warpline.trace.arrays import Bools
from warpline.trace.column_rules import ID
from warpline.trace.schema import TABLES

ROW_NUMBER = "row number, from 0; columns such as `api_id`, `op_id`, `parent` and `thread` refer to it"


class ColumnDoc(Struct, frozen=True):
    """A column as users see it."""

    dtype: DataTypeClass
    meaning: str


def columns_of(name: str) -> dict[str, ColumnDoc]:
    """The columns of a table for users."""
    texts = {
        column: ColumnDoc(pl.String if about.dtype is pl.Categorical else about.dtype, about.meaning)
        for column, about in TABLES[name].columns.items()
    }
    return {"id": ColumnDoc(ID, ROW_NUMBER), **texts}


def to_query(frame: pl.DataFrame, rows: Bools | None = None) -> pl.DataFrame:
    """A table for users: all rows, or the marked ones, with the ids of the whole table."""
    numbered = frame.with_row_index("id")
    chosen = numbered if rows is None else numbered.filter(rows)
    return chosen.with_columns(_strings(column) for column in chosen if column.dtype == pl.Categorical)


def to_scan(frame: pl.DataFrame, rows: Bools | None = None) -> pl.LazyFrame:
    """The same as a lazy frame, which converts only the columns that a query reads."""
    numbered = frame.lazy().with_row_index("id")
    chosen = numbered if rows is None else numbered.filter(pl.Series(rows))
    return chosen.with_columns(pl.col(pl.Categorical).cast(pl.String))


def _strings(column: pl.Series) -> pl.Series:
    """A categorical column as strings; a cast would copy the bytes of equal strings for each row."""
    distinct = column.unique().drop_nulls()
    known = pl.DataFrame({"code": distinct.to_physical(), "text": distinct.cast(pl.String)}).sort("code")
    codes = column.to_physical()
    places = known["code"].search_sorted(codes).set(codes.is_null(), None)
    return known["text"].gather(places).alias(column.name)
