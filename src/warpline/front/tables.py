"""Tables as frames of polars: an `id` column to join on, and string columns that support `like` and `.str`."""

from __future__ import annotations

import numpy as np
import polars as pl
from msgspec import Struct
from polars.datatypes import DataTypeClass

from warpline.trace.arrays import Bools
from warpline.trace.column_rules import ID
from warpline.trace.schema import TABLES
from warpline.trace.table import TraceTable

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


def to_query(table: TraceTable, rows: Bools | None = None) -> pl.DataFrame:
    """A table for users: all rows, or the marked ones, with the ids of the whole table."""
    chosen = table if rows is None else table[rows]
    ids = np.arange(len(table)) if rows is None else np.flatnonzero(rows)
    names = [column for column, about in table.columns.items() if about.dtype is pl.Categorical]
    texts = [chosen.column(name).series().alias(name) for name in names]
    return pl.DataFrame({"id": ids}, schema={"id": ID}).hstack(chosen.stored.with_columns(texts))


def to_scan(table: TraceTable, rows: Bools | None = None) -> pl.LazyFrame:
    """The same as a lazy frame, which converts only the columns that a query reads."""
    numbered = table.stored.lazy().with_row_index("id")
    chosen = numbered if rows is None else numbered.filter(pl.Series(rows))
    return chosen.with_columns(pl.col(pl.Categorical).cast(pl.String))
