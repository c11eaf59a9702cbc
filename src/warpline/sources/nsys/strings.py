"""The export's ``StringIds``: every name once, looked up by id for whole columns at a time."""

from __future__ import annotations

import polars as pl
from msgspec import Struct

from warpline.sources.nsys.tables import Tables


class Strings(Struct, frozen=True):
    """Texts by id."""

    table: pl.DataFrame
    """Columns ``id`` and ``value``, each id once."""

    @classmethod
    def of(cls, database: Tables) -> Strings:
        """All strings of the export."""
        frame = database.fetch("StringIds", integers=["id"], texts=["value"])
        return cls(frame.filter(pl.col("id").is_not_null()).unique("id", keep="first", maintain_order=True))

    def texts(self, ids: pl.Series) -> pl.Series:
        """The text of each id; null if the id is null or unknown."""
        wanted = pl.DataFrame({"id": ids.cast(pl.Int64)})
        return wanted.join(self.table, on="id", how="left", maintain_order="left")["value"]

    def names(self, ids: pl.Series, pattern: str = "", replacement: str = "") -> pl.Series:
        """Like ``texts``, interned, with ``pattern`` replaced in each distinct text once."""
        ids = ids.cast(pl.Int64)
        distinct = pl.DataFrame({"id": ids.unique().drop_nulls()}).join(
            self.table, on="id", how="left", maintain_order="left"
        )
        value = pl.col("value")
        if pattern:
            value = value.str.replace(pattern, replacement)
        distinct = distinct.select("id", value.cast(pl.Categorical))
        return pl.DataFrame({"id": ids}).join(distinct, on="id", how="left", maintain_order="left")["value"]

    def text(self, key: int | None) -> str:
        """One text; empty if unknown."""
        if key is None:
            return ""
        found = self.table.filter(pl.col("id") == key)["value"]
        return str(found[0] or "") if len(found) else ""
