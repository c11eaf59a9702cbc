"""A DataFrame as text: a table, CSV or JSON.

Numbers carry their unit in the column's title. Of a report of Nsight Systems the title decides the digits: megabytes
print with three, every other fraction with one, as Nsight Systems prints them. A query's answer keeps its fractions:
whole in CSV, and with four digits in a table.
"""

from __future__ import annotations

import re
from collections.abc import Collection

import polars as pl

from warpline.reports.layout import Cells, lay_out, left_out_note
from warpline.sanitise import sanitise

MEGABYTE_UNITS = ("(MB)", "(MB/s)")
KEY_TITLES = frozenset({"Name", "Operation", "Range", "NVTX Range", "Kernel Name", "name"})
"""Columns that identify a row, in the reports of nsys stats and in the trace's tables."""
SPREAD_PRIORITY = {"StdDev": 7, "Min": 6, "Max": 5, "Med": 4, "Avg": 3}
TRACE_KEYS = frozenset({"id", "name", "kind", "start_ns", "end_ns", "device", "stream", "thread"})
"""Columns of the trace's tables that are dropped last."""
EMPTY_PRIORITY = 9
COUNTS = frozenset(
    {"Instances", "Num Calls", "Count", "QCount", "NVTX Inst", "Kern Inst", "Range Instances", "Total GPU Ops", "count"}
)
IDENTIFIERS = frozenset({"Style", "PID", "TID", "Pid", "Tid", "T-Pri", "DevId", "CorrID", "CorrId", "Ctx", "GreenCtx"})


FORMULA_STARTS = ("=", "+", "-", "@")
NUMBER = re.compile(r"[-+][0-9.,]++")


def decimals(title: str) -> int:
    """Digits after the point for the fractions of a column."""
    return 3 if title.endswith(MEGABYTE_UNITS) else 1


def to_csv(frame: pl.DataFrame, *, as_nsys: bool = True) -> str:
    """Header and rows; a missing value is an empty field, and fields are quoted only if necessary.

    Control characters in a text are written as escapes, and a text that a spreadsheet would calculate (it begins with
    `=`, `+`, `-` or `@`, and is no number) has an apostrophe before it. JSON has every text as it is.
    """
    cells = [_csv_texts(column) for column in frame if column.dtype in (pl.String, pl.Categorical)]
    cells += [_decimal_text(column) for column in frame if as_nsys and column.dtype.is_float()]
    texts = frame.with_columns(cells).rename(_csv_text)
    # The writer quotes an empty text to distinguish it from a missing one; nsys does not.
    return texts.with_columns(pl.col(pl.String).replace("", None)).write_csv(quote_style="necessary")


def _csv_texts(column: pl.Series) -> pl.Series:
    """A column of texts for CSV; each distinct one is looked at once."""
    texts = column.cast(pl.String)
    changed = {text: safe for text in texts.unique().drop_nulls() if (safe := _csv_text(text)) != text}
    return texts.replace(changed) if changed else texts


def _csv_text(text: str) -> str:
    safe = sanitise(text)
    return f"'{safe}" if safe[:1] in FORMULA_STARTS and not NUMBER.fullmatch(safe) else safe


def to_records(frame: pl.DataFrame) -> list[dict[str, object]]:
    """One mapping of column title to value per row, for JSON; a missing value is null."""
    return frame.to_dicts()


def table_text(
    frame: pl.DataFrame,
    title: str = "",
    width: int | None = None,
    prose: Collection[str] = (),
    *,
    as_nsys: bool = True,
) -> str:
    """The table as plain text: numbers right-aligned with thousands separators, in `width` columns if given.

    The columns that identify a row are always shown; the last line lists the dropped ones. Prose wraps and is
    never cut.
    """
    keys = key_columns(frame)
    columns = []
    for column in frame:
        heading, *texts = map(sanitise, (column.name, *_texts(column, as_nsys=as_nsys)))
        columns.append(
            Cells(
                heading,
                texts,
                is_right=column.dtype.is_numeric(),
                is_key=column.name in keys,
                can_shrink=not column.dtype.is_numeric(),
                is_prose=column.name in prose,
                priority=_priority(column),
            )
        )
    laid = lay_out(columns, width)
    note = left_out_note(laid.left_out, width)
    parts = [*([title] if title else []), laid.head, *laid.lines, *([f"({note})"] if note else [])]
    return "\n".join(parts) + "\n"


def key_columns(frame: pl.DataFrame) -> set[str]:
    """The columns that identify a row: by title, else the first text column, else the first column."""
    named = set(KEY_TITLES.intersection(frame.columns))
    texts = [column.name for column in frame if not column.dtype.is_numeric()]
    return named or set((texts or frame.columns)[:1])


def _priority(column: pl.Series) -> int:
    """Columns with larger numbers are dropped first: those without a value, measures of spread, then identifiers."""
    if column.null_count() == len(column) > 0:
        return EMPTY_PRIORITY
    spread = (rank for word, rank in SPREAD_PRIORITY.items() if word in column.name)
    return next(spread, 2 if column.name in IDENTIFIERS else 0 if column.name in TRACE_KEYS else 1)


def _decimal_text(column: pl.Series) -> pl.Series:
    """Fractions as text, by vectorised integer arithmetic, which is fast on a million rows."""
    digits = decimals(column.name)
    scaled = (column.abs() * 10**digits).round().cast(int)
    whole, rest = (scaled // 10**digits).cast(str), (scaled % 10**digits).cast(str).str.zfill(digits)
    negative = ((column < 0) & (scaled > 0)).cast(int).cast(str).replace({"0": "", "1": "-"})
    text: pl.Series = negative + whole + "." + rest
    return text.alias(column.name)


def _texts(column: pl.Series, *, as_nsys: bool) -> list[str]:
    """Every value of a column as text."""
    if column.dtype.is_float():
        digits = decimals(column.name)
        return [
            "" if value is None else f"{value:,.{digits}f}" if as_nsys else _four_digits(value)
            for value in column.to_list()
        ]
    # Identifiers are integers too, but have no unit and count nothing.
    if column.dtype.is_integer() and ("(" in column.name or column.name in COUNTS):
        return ["" if value is None else f"{value:,}" for value in column.to_list()]
    return column.cast(str).fill_null("").to_list()


def _four_digits(value: float) -> str:
    return f"{value:,.1f}" if 1e3 <= abs(value) < 1e15 else f"{value:.4g}"
