"""Expressions that all nsys tables need: split ids, decode enumerations, check spans."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl
from msgspec import Struct, field

MAX_TIME_NS = 1 << 61
"""Seventy-three years. Larger values are damage, and would overflow when two times are added."""


class ReadingNotes(Struct):
    """What the table readers noticed; the health entries are written from it."""

    impossible: dict[str, int] = field(default_factory=dict)
    """Rows left out because they end before they start or have impossible times, by table."""
    graphs_without_times: int = 0
    api_suffixes: dict[str, str] = field(default_factory=dict)
    """Version suffixes that nsys itself prints, by API name without the suffix."""
    renumbered_devices: bool = False
    rows: dict[str, int] = field(default_factory=dict)
    """Rows read, by nsys table."""


def process(column: str) -> pl.Expr:
    """The process id within a globalTid or globalPid: hardware, VM, 24 bits of pid, 24 bits of tid."""
    return (pl.col(column) // (1 << 24)).mod(1 << 24)


def thread(column: str) -> pl.Expr:
    """The thread id within a globalTid."""
    return pl.col(column).mod(1 << 24)


def words(column: str, table: Mapping[int, str], default: str | None = None) -> pl.Expr:
    """The name of each code of an enumeration."""
    return pl.col(column).replace_strict(dict(table), default=default, return_dtype=pl.String).cast(pl.Categorical)


def narrow(column: str, dtype: type[pl.DataType] = pl.Int32) -> pl.Expr:
    """The column in a narrower type; null if a value does not fit."""
    return pl.col(column).cast(dtype, strict=False)


LAUNCH = (
    *("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"),
    *("registersPerThread", "staticSharedMemory", "dynamicSharedMemory"),
)
"""What CUPTI records of a kernel's launch; nvprof stores the same columns."""


def launch_columns() -> list[pl.Expr]:
    """They, as columns of the ``gpu`` table."""
    static, dynamic = pl.col("staticSharedMemory"), pl.col("dynamicSharedMemory")
    return [
        *(narrow(f"grid{axis}").alias(f"grid_{axis.lower()}") for axis in "XYZ"),
        *(narrow(f"block{axis}").alias(f"block_{axis.lower()}") for axis in "XYZ"),
        narrow("registersPerThread").alias("registers"),
        (static + dynamic).alias("shared_bytes"),
        static.alias("shared_static_bytes"),
        dynamic.alias("shared_dynamic_bytes"),
    ]


def category(word: str) -> pl.Expr:
    """One constant name for every row."""
    return pl.lit(word).cast(pl.Categorical)


def checked_spans(frame: pl.DataFrame, table: str, notes: ReadingNotes, *, open_end: bool = False) -> pl.DataFrame:
    """Keep the rows that end after they start; count the others.

    ``open_end`` keeps rows without an end: ranges that were never closed.
    """
    notes.rows[table] = notes.rows.get(table, 0) + frame.height
    start, end = pl.col("start"), pl.col("end")
    sane = start.is_between(-MAX_TIME_NS, MAX_TIME_NS)
    closed = (end >= start) & (end <= MAX_TIME_NS)
    keep = sane & ((closed | end.is_null()) if open_end else closed)
    kept = frame.filter(keep.fill_null(value=False))
    if kept.height < frame.height:
        notes.impossible[table] = notes.impossible.get(table, 0) + frame.height - kept.height
    return kept
