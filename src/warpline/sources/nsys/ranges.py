"""NVTX: ranges, marks and the domains they belong to."""

from __future__ import annotations

import polars as pl

from warpline.sources.nsys.columns import Notes, checked_spans, process, words
from warpline.sources.nsys.database import Database
from warpline.sources.nsys.strings import Strings
from warpline.sources.nsys.threads import Threads

NVTX = "NVTX_EVENTS"
# ENUM_NSYS_EVENT_TYPE; the NVTXT ones (70, 71, 65) come from imported text files.
STYLES = {59: "pushpop", 70: "pushpop", 60: "startend", 71: "startend", 34: "mark", 65: "mark"}
DOMAIN_CREATED = 75


def fetch_ranges(database: Database) -> pl.DataFrame:
    """NVTX rows with the file's own ids, unchecked: categories and domains have no times."""
    wanted = ["start", "end", "eventType", "rangeId", "globalTid", "endGlobalTid", "textId", "domainId"]
    return database.fetch(NVTX, wanted, ["text"])


def finish_ranges(frame: pl.DataFrame, strings: Strings, threads: Threads, notes: Notes) -> pl.DataFrame:
    """The ``ranges`` table, by thread and start time. A range that was never closed has no end."""
    registered = pl.Series(strings.texts(frame["textId"]), dtype=pl.String)
    frame = frame.with_columns(
        pl.coalesce("text", pl.lit(registered)).alias("name"), process("globalTid").alias("process")
    )
    domains = (
        frame.filter(pl.col("eventType") == DOMAIN_CREATED)
        .select("process", "domainId", pl.col("name").alias("domain"))
        .unique(["process", "domainId"], keep="last")
    )
    frame = frame.filter(pl.col("eventType").is_in(list(STYLES)))
    # A mark is a moment: it has no end in the file.
    moment = words("eventType", STYLES).cast(pl.String) == "mark"
    frame = frame.with_columns(pl.when(moment).then(pl.col("start")).otherwise("end").alias("end"))
    frame = checked_spans(frame, NVTX, notes, open_end=True)
    frame = frame.join(domains, on=["process", "domainId"], how="left", maintain_order="left")
    return frame.select(
        pl.col("name").fill_null("").cast(pl.Categorical),
        pl.col("domain").cast(pl.Categorical),
        words("eventType", STYLES).alias("style"),
        pl.lit(threads.row(frame["globalTid"])).alias("thread"),
        pl.col("start").alias("start_ns"),
        pl.col("end").alias("end_ns"),
        pl.col("rangeId").alias("range_id"),
        pl.lit(threads.row(frame["endGlobalTid"])).alias("end_thread"),
    ).sort("thread", "start_ns", maintain_order=True)
