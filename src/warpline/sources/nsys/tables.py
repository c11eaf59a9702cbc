"""The tables of an nsys export, in SQLite or as Parquet files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import polars as pl

from warpline.sources.sqlite.database import Damage


class Tables(Protocol):
    """The tables of one export, by name."""

    columns: dict[str, tuple[str, ...]]
    """The columns of every table."""
    damage: list[Damage]
    """Tables that could be read only up to a point, or not at all."""

    def fetch(
        self, table: str, integers: Iterable[str] = (), texts: Iterable[str] = (), numbers: Iterable[str] = ()
    ) -> pl.DataFrame:
        """The requested columns of a table; null if the table, the column or a value of that type is missing."""
