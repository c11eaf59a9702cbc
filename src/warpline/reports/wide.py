"""A table as plain text that fits: key columns stay, long texts are shortened, and a line says what is hidden."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len

from warpline.reports.tabular import decimals, shorten

if TYPE_CHECKING:
    import polars as pl

KEY_COLUMNS = ("id", "name", "kind", "start_ns", "end_ns", "device", "stream", "thread")
"""Shown first where not all columns fit; then come the others in their order, and those without a value last."""
MIN_TEXT_WIDTH = 16
MIN_TEXT_SHARE = 4
"""A text keeps this part of the whole width, where it is that long: a quarter."""
GAP = 1


@dataclass(frozen=True, slots=True)
class _Column:
    title: str
    texts: list[str]
    is_number: bool
    is_empty: bool
    full_width: int

    def least_width(self, whole: int) -> int:
        """What it needs at least of the whole width: numbers are never cut, texts may be."""
        readable = max(MIN_TEXT_WIDTH, whole // MIN_TEXT_SHARE, cell_len(self.title))
        return self.full_width if self.is_number else min(self.full_width, readable)

    def lines(self, width: int) -> list[str]:
        cells = [self.title, *self.texts]
        if self.full_width > width:
            cells = [shorten(text, width) for text in cells]
        pads = [" " * (width - cell_len(text)) for text in cells]
        pairs = zip(cells, pads, strict=True)
        return [pad + text if self.is_number else text + pad for text, pad in pairs]


def wide_table_text(frame: pl.DataFrame, width: int, all_columns: str) -> str:
    """The table within `width`; `all_columns` tells how to see the columns that do not fit."""
    columns = [_column(series) for series in frame]
    shown = _that_fit(columns, width)
    widths = _widths(shown, width)
    cells = [column.lines(room) for column, room in zip(shown, widths, strict=True)]
    lines = [(" " * GAP).join(row).rstrip() for row in zip(*cells, strict=True)]
    hidden = len(columns) - len(shown)
    if hidden:
        lines.append(f"({hidden} of {len(columns)} columns hidden; {all_columns})")
    return "\n".join(lines) + "\n"


def _column(series: pl.Series) -> _Column:
    if series.dtype.is_float():
        texts = ["" if value is None else f"{value:.{decimals(series.name)}f}" for value in series.to_list()]
    else:
        texts = ["" if value is None else _one_line(str(value)) for value in series.to_list()]
    is_empty = series.null_count() == len(series) > 0
    return _Column(
        series.name, texts, series.dtype.is_numeric(), is_empty, max(map(cell_len, [series.name, *set(texts)]))
    )


def _one_line(text: str) -> str:
    return text if text.isprintable() else "".join(char if char.isprintable() else " " for char in text)


def _that_fit(columns: list[_Column], width: int) -> list[_Column]:
    """All columns where they fit; else the most important ones that do, in their order, and at least one."""
    ranked = sorted(range(len(columns)), key=lambda place: (*_rank(columns[place]), place))
    chosen: list[int] = []
    left = width + GAP
    for place in ranked:
        needed = columns[place].least_width(width) + GAP
        if needed > left and chosen:
            # A later column that happens to be narrow would stand there at random.
            break
        chosen.append(place)
        left -= needed
    return [columns[place] for place in sorted(chosen)]


def _rank(column: _Column) -> tuple[bool, int]:
    key = KEY_COLUMNS.index(column.title) if column.title in KEY_COLUMNS else len(KEY_COLUMNS)
    return column.is_empty, key


def _widths(columns: list[_Column], width: int) -> list[int]:
    """Each column's least width, and what is left for the texts, the shortest first so that it goes furthest."""
    widths = [column.least_width(width) for column in columns]
    left = width - sum(widths) - GAP * (len(columns) - 1)
    wanting = sorted(range(len(columns)), key=lambda place: columns[place].full_width)
    for tried, place in enumerate(wanting):
        more = min(columns[place].full_width - widths[place], max(0, left) // (len(wanting) - tried))
        widths[place] += more
        left -= more
    return widths
