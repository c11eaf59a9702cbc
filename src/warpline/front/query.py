"""SQL over the tables of a trace."""

from __future__ import annotations

import re
from collections.abc import Mapping

import polars as pl

from warpline.errors import UsageError
from warpline.front.tables import columns_of, to_scan
from warpline.trace.arrays import Bools
from warpline.trace.schema import TABLES
from warpline.trace.trace import Trace

_READING = re.compile(r"\bread_(?:csv|parquet|ipc|json|ndjson)\w*", re.IGNORECASE)
"""Table functions of polars' SQL that open files."""


def run_query(trace: Trace, query: str, rows: Mapping[str, Bools] | None = None) -> pl.DataFrame:
    """Run a SELECT in polars' SQL dialect; `rows` limits tables to their marked rows."""
    if function := _READING.search(query):
        # Wherever it stands: what is a comment or a text is the dialect's business.
        raise UsageError(
            "bad-query",
            f"{function[0]} reads files; a query reads the tables of the trace",
            "warpline sql FILE",
        )
    marked = rows or {}
    # Only the named tables are loaded: a cached trace reads each table on first use.
    named = [name for name in TABLES if re.search(rf"\b{name}\b", query, re.IGNORECASE)]
    context = pl.SQLContext({name: to_scan(trace.tables[name], marked.get(name)) for name in named})
    try:
        return context.execute(query, eager=True)
    except pl.exceptions.PolarsError as error:
        reason = str(error).strip().partition("\n")[0]
        # polars lists the valid columns itself.
        hint = "" if isinstance(error, pl.exceptions.ColumnNotFoundError) else f"tables: {', '.join(TABLES)}"
        raise UsageError("bad-query", f"the query cannot be run: {reason}", hint) from error


def table_list(trace: Trace) -> pl.DataFrame:
    """Every table and column, with its meaning."""
    return pl.DataFrame(
        [
            {"table": name, "rows": len(trace.tables[name]), "column": column, "meaning": about.meaning}
            for name in TABLES
            for column, about in columns_of(name).items()
        ]
    )
