"""GPU activity: kernels, copies, memsets, whole graph replays, decompressions."""

from __future__ import annotations

import polars as pl

from warpline.sources.nsys.columns import (
    LAUNCH,
    ReadingNotes,
    category,
    checked_spans,
    launch_columns,
    process,
    words,
)
from warpline.sources.nsys.devices import Ordinals
from warpline.sources.nsys.strings import Strings
from warpline.sources.nsys.tables import Tables

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
COPIES = "CUPTI_ACTIVITY_KIND_MEMCPY"
SETS = "CUPTI_ACTIVITY_KIND_MEMSET"
GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
DECOMPRESSIONS = "CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS"

# ENUM_CUDA_MEMCPY_OPER: its short name, and the label that nsys prints.
COPY_KINDS: dict[int, tuple[str, str]] = {
    0: ("Unknown", "Unknown"),
    1: ("HtoD", "Host-to-Device"),
    2: ("DtoH", "Device-to-Host"),
    3: ("HtoA", "Host-to-Array"),
    4: ("AtoH", "Array-to-Host"),
    5: ("AtoA", "Array-to-Array"),
    6: ("AtoD", "Array-to-Device"),
    7: ("DtoA", "Device-to-Array"),
    8: ("DtoD", "Device-to-Device"),
    9: ("HtoH", "Host-to-Host"),
    10: ("PtoP", "Peer-to-Peer"),
    11: ("UnifiedHtoD", "Unified Host-to-Device"),
    12: ("UnifiedDtoH", "Unified Device-to-Host"),
    13: ("UnifiedDtoD", "Unified Device-to-Device"),
}
# ENUM_CUDA_MEM_KIND; the static variants are device and managed memory too.
MEMORY_KINDS = {0: "Pageable", 1: "Pinned", 2: "Device", 3: "Array", 4: "Managed", 5: "Device", 6: "Managed"}

_PLACE = ["start", "end", "deviceId", "contextId", "greenContextId", "streamId", "correlationId", "globalPid"]


def read_gpu(database: Tables, strings: Strings, ordinals: Ordinals, notes: ReadingNotes) -> pl.DataFrame:
    """The ``gpu`` table, by start time."""
    parts = [
        _kernels(database, strings, ordinals, notes),
        _copies(database, ordinals, notes),
        _sets(database, ordinals, notes),
        _graphs(database, ordinals, notes),
        _decompressions(database, ordinals, notes),
    ]
    return pl.concat(parts, how="diagonal").sort("start_ns", maintain_order=True)


def _place(ordinals: Ordinals) -> list[pl.Expr]:
    return [
        ordinals.device("deviceId", "globalPid"),
        pl.col("contextId").alias("context"),
        # Zero in the file: the kernel ran in no green context.
        pl.col("greenContextId").replace(0, None).alias("green_context"),
        pl.col("streamId").alias("stream"),
        pl.col("start").alias("start_ns"),
        pl.col("end").alias("end_ns"),
        process("globalPid").alias("process"),
        pl.col("correlationId").alias("correlation"),
    ]


def _kernels(database: Tables, strings: Strings, ordinals: Ordinals, notes: ReadingNotes) -> pl.DataFrame:
    wanted = [*_PLACE, "demangledName", "shortName", *LAUNCH, "graphId", "graphNodeId"]
    frame = checked_spans(database.fetch(KERNELS, wanted), KERNELS, notes)
    demangled, short = strings.names(frame["demangledName"]), strings.names(frame["shortName"])
    return frame.select(
        category("kernel").alias("kind"),
        # A name is missing only if StringIds is damaged; the row's time is still valid.
        pl.coalesce(pl.lit(demangled), pl.lit(short), category("[kernel without a name]")).alias("name"),
        pl.lit(short).alias("short_name"),
        *_place(ordinals),
        pl.col("graphId").alias("graph_id"),
        pl.col("graphNodeId").alias("graph_node_id"),
        *launch_columns(),
    )


def _copies(database: Tables, ordinals: Ordinals, notes: ReadingNotes) -> pl.DataFrame:
    wanted = [*_PLACE, "bytes", "copyKind", "srcKind", "dstKind", "graphNodeId", "virtualAddress"]
    frame = checked_spans(database.fetch(COPIES, wanted), COPIES, notes)
    names = {code: f"[CUDA memcpy {label}]" for code, (_, label) in COPY_KINDS.items()}
    return frame.select(
        category("memcpy").alias("kind"),
        words("copyKind", names, "[CUDA memcpy Unknown]").alias("name"),
        *_place(ordinals),
        pl.col("graphNodeId").alias("graph_node_id"),
        pl.col("bytes"),
        words("copyKind", {code: short for code, (short, _) in COPY_KINDS.items()}, "Unknown").alias("copy_kind"),
        words("srcKind", MEMORY_KINDS, "Unknown").alias("source_memory"),
        words("dstKind", MEMORY_KINDS, "Unknown").alias("target_memory"),
        # Recorded only for migrations of unified memory; zero for other copies.
        pl.col("virtualAddress").replace(0, None).alias("address"),
    )


def _sets(database: Tables, ordinals: Ordinals, notes: ReadingNotes) -> pl.DataFrame:
    frame = checked_spans(database.fetch(SETS, [*_PLACE, "bytes", "memKind", "graphNodeId"]), SETS, notes)
    return frame.select(
        category("memset").alias("kind"),
        category("[CUDA memset]").alias("name"),
        *_place(ordinals),
        pl.col("graphNodeId").alias("graph_node_id"),
        pl.col("bytes"),
        words("memKind", MEMORY_KINDS, "Unknown").alias("target_memory"),
    )


def _graphs(database: Tables, ordinals: Ordinals, notes: ReadingNotes) -> pl.DataFrame:
    frame = database.fetch(GRAPHS, [*_PLACE, "graphId", "graphExecId"])
    # nsys writes zero twice if CUPTI gave no timestamps.
    untimed = (pl.col("start") == 0) & (pl.col("end") == 0)
    notes.graphs_without_times = frame.filter(untimed).height
    frame = checked_spans(frame.filter(~untimed.fill_null(value=False)), GRAPHS, notes)
    graph = pl.coalesce("graphExecId", "graphId")
    return frame.select(
        category("graph").alias("kind"),
        pl.format("[CUDA graph {}]", graph.cast(pl.String).fill_null("?")).cast(pl.Categorical).alias("name"),
        *_place(ordinals),
        graph.alias("graph_id"),
    )


def _decompressions(database: Tables, ordinals: Ordinals, notes: ReadingNotes) -> pl.DataFrame:
    frame = checked_spans(database.fetch(DECOMPRESSIONS, [*_PLACE, "sourceBytes"]), DECOMPRESSIONS, notes)
    return frame.select(
        category("decompress").alias("kind"),
        category("[CUDA memory decompression]").alias("name"),
        *_place(ordinals),
        pl.col("sourceBytes").alias("bytes"),
    )
