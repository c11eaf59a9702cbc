"""The table that all reports share: numbers to the right in full, and a name that takes the room that is left."""

from __future__ import annotations

from rich import box
from rich.table import Table
from rich.text import Text

from warpline.reports.tabular import shorten

NARROWEST_NAME = 24


def numbers_table(titles: list[str], rows: list[list[str]], width: int) -> Table:
    """Columns of numbers, then a column of names, shortened in their middle to fit the width."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), show_edge=False, header_style="bright_black")
    widths = [max(len(row[column]) for row in [titles, *rows]) for column in range(len(titles))]
    room = max(NARROWEST_NAME, width - sum(widths[:-1]) - 3 * len(titles))
    for title, needed in zip(titles[:-1], widths[:-1], strict=True):
        table.add_column(title, justify="right", no_wrap=True, min_width=needed)
    table.add_column(titles[-1], no_wrap=True)
    for row in rows:
        table.add_row(*row[:-1], Text(shorten(row[-1], room)))
    return table
