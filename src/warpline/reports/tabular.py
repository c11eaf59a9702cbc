"""A frame as text: a table for a terminal, CSV or JSON.

Numbers carry their unit in the column's title, and the title decides the digits: megabytes print with three,
every other fraction with one, as Nsight Systems prints them.
"""

from __future__ import annotations

import io
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl
    from rich.table import Table

MEGABYTE_UNITS = ("(MB)", "(MB/s)")
NARROWEST_NAME = 24
ELLIPSIS = "…"


class Format(StrEnum):
    """How frames are written."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


def decimals(title: str) -> int:
    """Digits after the point for the fractions of a column."""
    return 3 if title.endswith(MEGABYTE_UNITS) else 1


def to_csv(frame: pl.DataFrame) -> str:
    """Header and rows; a missing value is an empty field, and fields are quoted only where they must be."""
    import polars as pl  # noqa: PLC0415 - a command that prints no frame need not load it

    texts = frame.with_columns(_decimal_text(column) for column in frame if column.dtype.is_float())
    # The writer tells an empty text from a missing one by quoting it; nsys does not.
    return texts.with_columns(pl.col(pl.String).replace("", None)).write_csv(quote_style="necessary")


def to_records(frame: pl.DataFrame) -> list[dict[str, object]]:
    """One mapping of column title to value for each row, ready for JSON; a missing value is null."""
    return frame.to_dicts()


def to_table(frame: pl.DataFrame, title: str = "", width: int | None = None) -> Table:
    """A table for rich: numbers to the right, thousands apart.

    The last column, a name, is shortened in its middle to fit ``width``: kernels often differ at both ends.
    """
    from rich.table import Table  # noqa: PLC0415 - slow to load, and only a table needs it
    from rich.text import Text  # noqa: PLC0415

    columns = [_texts(column, thousands=True) for column in frame]
    if width is not None and columns:
        taken = sum(max(map(len, [name, *texts])) + 1 for name, texts in zip(frame.columns, columns, strict=True))
        last = max(map(len, [frame.columns[-1], *columns[-1]]))
        room = max(NARROWEST_NAME, width - (taken - last))
        columns[-1] = [shorten(text, room) for text in columns[-1]]
    table = Table(title=title or None, title_justify="left", box=None, padding=(0, 1, 0, 0), pad_edge=False)
    for column in frame:
        table.add_column(Text(column.name), justify="right" if column.dtype.is_numeric() else "left", no_wrap=True)
    for row in zip(*columns, strict=True):
        table.add_row(*map(Text, row))
    return table


def table_text(frame: pl.DataFrame, title: str = "", width: int | None = None) -> str:
    """The table as plain text, as wide as it needs to be."""
    from rich.console import Console  # noqa: PLC0415 - slow to load, and only a table needs it

    table = to_table(frame, title, width)
    buffer = io.StringIO()
    console = Console(file=buffer, width=1, color_system=None)
    natural = console.measure(table, options=console.options.update(width=1_000_000)).maximum
    Console(file=buffer, width=max(natural, len(title), 1), color_system=None).print(table)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


def shorten(text: str, room: int) -> str:
    """The text with its middle left out where it is longer than ``room``."""
    if len(text) <= room:
        return text
    tail = (room - 1) // 2
    return text[: room - 1 - tail] + ELLIPSIS + text[len(text) - tail :]


def _decimal_text(column: pl.Series) -> pl.Series:
    """Fractions as text, by whole-number arithmetic: a million rows are formatted at once."""
    digits = decimals(column.name)
    scaled = (column.abs() * 10**digits).round().cast(int)
    whole, rest = (scaled // 10**digits).cast(str), (scaled % 10**digits).cast(str).str.zfill(digits)
    negative = ((column < 0) & (scaled > 0)).cast(int).cast(str).replace({"0": "", "1": "-"})
    text: pl.Series = negative + whole + "." + rest
    return text.alias(column.name)


def _texts(column: pl.Series, *, thousands: bool = False) -> list[str]:
    """Every value of a column as it prints."""
    comma = "," if thousands else ""
    if column.dtype.is_float():
        pattern = f"{{:{comma}.{decimals(column.name)}f}}"
        return ["" if value is None else pattern.format(value) for value in column.to_list()]
    # Identifiers are integers too, but have no unit.
    if thousands and column.dtype.is_integer() and "(" in column.name:
        return ["" if value is None else f"{value:,}" for value in column.to_list()]
    return column.cast(str).fill_null("").to_list()
