"""GPU activity of an nvprof database: kernels, copies, memsets."""

from __future__ import annotations

import polars as pl

from warpline.sources.nsys.columns import LAUNCH, ReadingNotes, category, checked_spans, launch_columns, narrow, words
from warpline.sources.sqlite.database import Database

KERNEL_TABLES = (
    "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL",
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_CDP_KERNEL",
)
"""Kernels; serialised ones (--concurrent-kernels off) and those launched by kernels have tables of their own."""
COPY_TABLES = ("CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMCPY2")
"""Copies, and those between devices."""
# CUpti_ActivityMemcpyKind, CUpti_ActivityMemoryKind.
COPY_KINDS = dict(enumerate(("HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"), 1))
MEMORY_KINDS = dict(enumerate(("Pageable", "Pinned", "Device", "Array", "Managed", "Device", "Managed"), 1))
_PLACE = ["start", "end", "deviceId", "contextId", "streamId", "correlationId"]


def read_gpu(database: Database, names: pl.DataFrame, notes: ReadingNotes) -> pl.DataFrame:
    """The ``gpu`` table, by start time, on the device's clock."""
    parts = [_kernels(database, table, names, notes) for table in KERNEL_TABLES]
    parts += [_copies(database, table, notes) for table in COPY_TABLES]
    parts.append(_sets(database, notes))
    return pl.concat(parts, how="diagonal").sort("start_ns", maintain_order=True)


def _place() -> list[pl.Expr]:
    return [
        narrow("deviceId").alias("device"),
        pl.col("contextId").alias("context"),
        pl.col("streamId").alias("stream"),
        pl.col("start").alias("start_ns"),
        pl.col("end").alias("end_ns"),
        pl.col("correlationId").alias("correlation"),
    ]


def _kernels(database: Database, table: str, names: pl.DataFrame, notes: ReadingNotes) -> pl.DataFrame:
    frame = checked_spans(database.fetch(table, [*_PLACE, "name", *LAUNCH, "graphId", "graphNodeId"]), table, notes)
    return frame.select(
        category("kernel").alias("kind"),
        pl.coalesce(pl.lit(text_of(frame, "name", names)), pl.lit("[kernel without a name]"))
        .cast(pl.Categorical)
        .alias("name"),
        *_place(),
        # Zero in the file: launched without a graph.
        pl.col("graphId").replace(0, None).alias("graph_id"),
        pl.col("graphNodeId").replace(0, None).alias("graph_node_id"),
        *launch_columns(),
    )


def _copies(database: Database, table: str, notes: ReadingNotes) -> pl.DataFrame:
    frame = checked_spans(database.fetch(table, [*_PLACE, "bytes", "copyKind", "srcKind", "dstKind"]), table, notes)
    kind = words("copyKind", COPY_KINDS, "Unknown")
    return frame.select(
        category("memcpy").alias("kind"),
        pl.format("[CUDA memcpy {}]", kind).cast(pl.Categorical).alias("name"),
        *_place(),
        pl.col("bytes"),
        kind.alias("copy_kind"),
        words("srcKind", MEMORY_KINDS, "Unknown").alias("source_memory"),
        words("dstKind", MEMORY_KINDS, "Unknown").alias("target_memory"),
    )


def _sets(database: Database, notes: ReadingNotes) -> pl.DataFrame:
    table = "CUPTI_ACTIVITY_KIND_MEMSET"
    frame = checked_spans(database.fetch(table, [*_PLACE, "bytes", "memoryKind"]), table, notes)
    return frame.select(
        category("memset").alias("kind"),
        category("[CUDA memset]").alias("name"),
        *_place(),
        pl.col("bytes"),
        words("memoryKind", MEMORY_KINDS, "Unknown").alias("target_memory"),
    )


def read_names(database: Database) -> pl.DataFrame:
    """Columns ``id`` and ``value``, each id once."""
    frame = database.fetch("StringTable", ["_id_"], ["value"]).drop_nulls()
    return frame.select(pl.col("_id_").alias("id"), "value").unique("id", keep="first")


def text_of(frame: pl.DataFrame, column: str, names: pl.DataFrame) -> pl.Series:
    """The text that each id of a column stands for; null if unknown."""
    wanted = frame.select(pl.col(column).alias("id"))
    return wanted.join(names, on="id", how="left", maintain_order="left")["value"]
