"""nvprof's ``StringTable``: every name once."""

from __future__ import annotations

import polars as pl

from warpline.sources.nsys.database import Database


def read_names(database: Database) -> pl.DataFrame:
    """Columns ``id`` and ``value``, each id once."""
    frame = database.fetch("StringTable", ["_id_"], ["value"]).drop_nulls()
    return frame.select(pl.col("_id_").alias("id"), "value").unique("id", keep="first")


def text_of(frame: pl.DataFrame, column: str, names: pl.DataFrame) -> pl.Series:
    """The text that each id of a column stands for; null if unknown."""
    wanted = frame.select(pl.col(column).alias("id"))
    return wanted.join(names, on="id", how="left", maintain_order="left")["value"]
