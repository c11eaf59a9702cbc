"""The threads of all profiled processes, and their row numbers for the other tables."""

from __future__ import annotations

import polars as pl
from msgspec import Struct

from warpline.sources.nsys.columns import narrow, process, thread
from warpline.sources.nsys.strings import Strings
from warpline.sources.nsys.tables import Tables


class NsysThreads(Struct, frozen=True):
    """The ``threads`` table and the global id of each of its rows."""

    table: pl.DataFrame
    rows: pl.DataFrame
    """Columns ``id`` (globalTid) and ``row``."""

    def row(self, ids: pl.Series) -> pl.Series:
        """The row of ``threads`` for each globalTid."""
        wanted = pl.DataFrame({"id": ids.cast(pl.Int64)})
        return wanted.join(self.rows, on="id", how="left", maintain_order="left")["row"]


def read_threads(database: Tables, strings: Strings, referenced: list[pl.Series]) -> NsysThreads:
    """Every thread that a row references, and the named threads of the same processes.

    ``ThreadNames`` lists the whole machine if the capture was system-wide; unrelated processes are left out.
    """
    used = pl.concat([pl.Series("id", [], pl.Int64), *(ids.cast(pl.Int64).alias("id") for ids in referenced)]).unique()
    named = database.fetch("ThreadNames", ["nameId", "priority", "globalTid"])
    # The lower the number, the stronger the name: 0 set by the program, 10 by nsys, 20 by the system.
    named = (
        named.filter(pl.col("globalTid").is_not_null())
        .sort("priority", nulls_last=True, maintain_order=True)
        .unique("globalTid", keep="first", maintain_order=True)
    )
    named = named.select(pl.col("globalTid").alias("id"), "nameId", "priority")
    processes = database.fetch("PROCESSES", ["globalPid"], ["name"])
    owners = pl.concat([used // (1 << 24), processes["globalPid"].alias("id") // (1 << 24)]).drop_nulls().unique()
    own = named.filter((pl.col("id") // (1 << 24)).is_in(owners.implode()))["id"]
    ids = pl.concat([used.drop_nulls(), own]).unique().sort()
    frame = pl.DataFrame({"id": ids}).join(named, on="id", how="left", maintain_order="left")
    frame = frame.with_columns(
        pl.Series("name", strings.texts(frame["nameId"]), pl.String),
        process("id").alias("process"),
        thread("id").alias("tid"),
    )
    process_names = processes.select(process("globalPid").alias("process"), pl.col("name").alias("process_name"))
    frame = frame.join(
        process_names.drop_nulls("process").unique("process", keep="first"),
        on="process",
        how="left",
        maintain_order="left",
    )
    # Files without filled PROCESSES: the main thread has the program's name.
    main = frame.filter(pl.col("process") == pl.col("tid")).select("process", pl.col("name").alias("main_name"))
    frame = frame.join(main.unique("process", keep="first"), on="process", how="left", maintain_order="left")
    frame = frame.with_columns(pl.coalesce("process_name", "main_name").alias("process_name"))
    rows = frame.select("id").with_row_index("row").select("id", pl.col("row").cast(pl.UInt32))
    return NsysThreads(frame.select("process", "tid", "name", "process_name", narrow("priority")), rows)
