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
_SELECTING = re.compile(r"(?:\s|\(|--[^\n]*\n|/\*.*?\*/)*(?:select|with|from|values)\b", re.IGNORECASE | re.DOTALL)
"""How a query begins that only reads."""


def run_query(
    trace: Trace, query: str, rows: Mapping[str, Bools] | None = None, max_rows: int | None = None
) -> pl.DataFrame:
    """Run a SELECT in polars' SQL dialect; `rows` limits tables to their marked rows. More than `max_rows` rows are an
    error."""
    if not _SELECTING.match(query):
        hint = f"begin with select or with; tables: {', '.join(TABLES)}"
        raise UsageError("bad-query", "the query is no SELECT; a trace can only be read", hint)
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
        found = context.execute(query)
        frame = found.collect() if max_rows is None else found.head(max_rows + 1).collect()
    except pl.exceptions.PolarsError as error:
        reason = str(error).strip().partition("\n")[0]
        # polars lists the valid columns itself.
        hint = "" if isinstance(error, pl.exceptions.ColumnNotFoundError) else f"tables: {', '.join(TABLES)}"
        raise UsageError("bad-query", f"the query cannot be run: {reason}", hint) from error
    if max_rows is not None and len(frame) > max_rows:
        hint = "aggregate with group by, or add a limit"
        raise UsageError("too-many-rows", f"the query gives more than {max_rows:,} rows", hint)
    return frame


def table_list(trace: Trace) -> pl.DataFrame:
    """Every table and column, with its meaning."""
    return pl.DataFrame(
        [
            {"table": name, "rows": len(trace.tables[name]), "column": column, "meaning": about.meaning}
            for name in TABLES
            for column, about in columns_of(name).items()
        ]
    )
