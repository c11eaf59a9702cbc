"""An nvprof database as rows.

nvprof writes CUPTI's activity records, one table a kind, with names in `StringTable` and calls as callback ids. Times
are those of two clocks; see `clock`.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from warpline.errors import UnreadableFile
from warpline.package_data import read_table
from warpline.sources.health import HealthEntry
from warpline.sources.nsys.columns import ReadingNotes, category, checked_spans, narrow, words
from warpline.sources.nvprof.clock import clock_shift, shift_health
from warpline.sources.nvprof.gpu import read_gpu, read_names, text_of
from warpline.sources.rows import Rows, with_thread
from warpline.sources.sqlite.database import Database, open_database
from warpline.sources.sqlite.plain_file import plain_sqlite

# CUpti_ActivitySynchronizationType, CUpti_ActivityOverheadKind.
SYNC_KINDS = dict(enumerate(("event", "stream_wait_event", "stream", "context"), 1))
OVERHEADS = {
    1: "Driver compiler",
    1 << 16: "CUPTI buffer flush",
    2 << 16: "CUPTI instrumentation",
    3 << 16: "CUPTI resource",
}
RANGE_START, RANGE_END = 2, 4
"""CUpti_ActivityFlag of NVTX markers."""


def read_nvprof(path: Path) -> Rows:
    """Read an nvprof database, plain or gzipped."""
    notes = ReadingNotes()
    with plain_sqlite(path) as plain, open_database(plain.path, path) as database:
        names = read_names(database)
        calls = _calls(database, notes)
        syncs, markers = _syncs(database, notes), _ranges(database, names)
        threads = _threads(calls, markers, _program(database, names))
        tables = {
            "gpu": read_gpu(database, names, notes),
            "api": with_thread(calls, threads),
            "ranges": with_thread(markers, threads).drop("process"),
            "syncs": syncs,
            "events": _events(database),
            "overhead": _overhead(database, notes),
            "threads": threads.drop("row"),
            "devices": _devices(database, names),
        }
        damage = [
            HealthEntry(
                "damaged-file", "error", f"The table {one.table} is read up to its row {one.rows}: {one.reason}."
            )
            for one in database.damage
        ]
        if not any(len(tables[name]) for name in ("gpu", "api", "ranges")):
            raise UnreadableFile(
                "empty-trace", f"{path} has nvprof's tables, but no kernel, call or range in them", "record it again"
            )
        version = database.fetch("Version", ["version"])["version"].drop_nulls()
    health = [*plain.health, *damage, *_impossible(notes)]
    shift = clock_shift(tables["gpu"], tables["api"], syncs.filter(pl.col("kind").cast(pl.String) == "stream"))
    if shift is not None:
        tables["gpu"] = tables["gpu"].with_columns(shift.on_host_clock(name) for name in ("start_ns", "end_ns"))
        health.append(shift_health(shift))
    meta = {"producer": "nvprof", "epoch_ns": str(_from_zero(tables))}
    if len(version):
        meta["nvprof_schema"] = str(version[0])
    return Rows("nvprof", tables, meta, health)


def _from_zero(tables: dict[str, pl.DataFrame]) -> int:
    """Make the first time zero; returns what it was."""
    timed = [name for name, table in tables.items() if "start_ns" in table.columns and len(table)]
    zero = min(int(tables[name]["start_ns"].min()) for name in timed)  # type: ignore[arg-type]
    for name in timed:
        tables[name] = tables[name].with_columns(pl.col("start_ns", "end_ns") - zero)
    return zero


def _calls(database: Database, notes: ReadingNotes) -> pl.DataFrame:
    parts = []
    for layer, calls in read_table("sources", "cupti_calls", dict[str, dict[str, tuple[int, ...]]]).items():
        table = f"CUPTI_ACTIVITY_KIND_{layer.upper()}"
        wanted = ["cbid", "start", "end", "processId", "threadId", "correlationId", "returnValue"]
        frame = checked_spans(database.fetch(table, wanted), table, notes)
        known = {number: name for name, numbers in calls.items() for number in numbers}
        other = pl.format(f"[{layer} call {{}}]", pl.col("cbid").fill_null(0))
        name = pl.col("cbid").replace_strict(known, default=None, return_dtype=pl.String)
        parts.append(
            frame.select(
                pl.coalesce(name, other).cast(pl.Categorical).alias("name"),
                category(layer).alias("layer"),
                pl.col("start").alias("start_ns"),
                pl.col("end").alias("end_ns"),
                pl.col("processId").alias("process"),
                pl.col("threadId").alias("tid"),
                pl.col("correlationId").alias("correlation"),
                narrow("returnValue").alias("return_code"),
            )
        )
    return pl.concat(parts).sort("start_ns", maintain_order=True)


def _syncs(database: Database, notes: ReadingNotes) -> pl.DataFrame:
    table = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
    wanted = ["type", "start", "end", "correlationId", "contextId", "streamId", "cudaEventId"]
    frame = checked_spans(database.fetch(table, wanted), table, notes)
    return frame.select(
        words("type", SYNC_KINDS, "unknown").alias("kind"),
        pl.col("contextId").alias("context"),
        # A number below zero stands for none.
        pl.when(pl.col("streamId") >= 0).then(pl.col("streamId")).alias("stream"),
        pl.col("start").alias("start_ns"),
        pl.col("end").alias("end_ns"),
        pl.col("correlationId").alias("correlation"),
        pl.when(pl.col("cudaEventId") >= 0).then(pl.col("cudaEventId")).alias("event_id"),
    ).sort("start_ns", maintain_order=True)


def _events(database: Database) -> pl.DataFrame:
    frame = database.fetch("CUPTI_ACTIVITY_KIND_CUDA_EVENT", ["contextId", "streamId", "correlationId", "eventId"])
    return frame.select(
        pl.col("contextId").alias("context"),
        pl.col("streamId").alias("stream"),
        pl.col("correlationId").alias("correlation"),
        pl.col("eventId").alias("event_id"),
    )


def _overhead(database: Database, notes: ReadingNotes) -> pl.DataFrame:
    table = "CUPTI_ACTIVITY_KIND_OVERHEAD"
    frame = checked_spans(database.fetch(table, ["overheadKind", "start", "end"]), table, notes)
    return frame.select(
        words("overheadKind", OVERHEADS, "Unknown").alias("name"),
        pl.col("start").alias("start_ns"),
        pl.col("end").alias("end_ns"),
    ).sort("start_ns", maintain_order=True)


def _ranges(database: Database, names: pl.DataFrame) -> pl.DataFrame:
    """NVTX ranges: a marker that starts and one that ends, under one id; the end's name is empty."""
    frame = database.fetch(
        "CUPTI_ACTIVITY_KIND_MARKER", ["flags", "timestamp", "id", "name"], hexes=["objectId"]
    ).drop_nulls(["flags", "timestamp", "id"])
    frame = frame.with_columns(pl.Series("text", text_of(frame, "name", names), pl.String))
    owner = pl.col("objectId")
    begun = frame.filter((pl.col("flags") & RANGE_START) != 0).unique("id", keep="first", maintain_order=True)
    ended = frame.filter((pl.col("flags") & RANGE_END) != 0).select("id", pl.col("timestamp").alias("end_ns"))
    whole = begun.join(ended.unique("id", keep="last"), on="id", how="left", maintain_order="left")
    return whole.filter(pl.col("end_ns").is_null() | (pl.col("end_ns") >= pl.col("timestamp"))).select(
        pl.col("text").cast(pl.Categorical).alias("name"),
        category("pushpop").alias("style"),
        pl.col("timestamp").alias("start_ns"),
        "end_ns",
        _little_endian(owner, 0).alias("process"),
        _little_endian(owner, 4).alias("tid"),
        pl.col("id").alias("range_id"),
    )


def _little_endian(text: pl.Expr, first: int) -> pl.Expr:
    """The signed 32-bit number that begins at a byte of a blob in hexadecimal."""
    number = pl.concat_str([text.str.slice(2 * (first + place), 2) for place in (3, 2, 1, 0)])
    value = number.str.to_integer(base=16, strict=False)
    return pl.when(value >= 1 << 31).then(value - (1 << 32)).otherwise(value)


def _program(database: Database, names: pl.DataFrame) -> str | None:
    """Name of the profiled process."""
    frame = database.fetch("CUPTI_ACTIVITY_KIND_NAME", ["objectKind", "name"]).filter(pl.col("objectKind") == 1)
    found = text_of(frame, "name", names).drop_nulls()
    return str(found[0]) if len(found) else None


def _threads(calls: pl.DataFrame, ranges: pl.DataFrame, program: str | None) -> pl.DataFrame:
    """Every thread that called CUDA or marked a range, and its row."""
    both = pl.concat([calls.select("process", "tid"), ranges.select("process", "tid")])
    frame = both.unique(maintain_order=True).with_row_index("row")
    return frame.with_columns(pl.lit(program, pl.String).alias("process_name"))


def _devices(database: Database, names: pl.DataFrame) -> pl.DataFrame:
    facts = {
        "computeCapabilityMajor": "compute_major",
        "computeCapabilityMinor": "compute_minor",
        "numMultiprocessors": "sm_count",
        "numThreadsPerWarp": "warp_size",
    }
    large = {
        "globalMemorySize": "memory_bytes",
        "l2CacheSize": "l2_bytes",
        "maxRegistersPerMultiprocessor": "registers_per_sm",
        "maxSharedMemoryPerMultiprocessor": "shared_bytes_per_sm",
    }
    kilo = {"globalMemoryBandwidth": "memory_bandwidth", "coreClockRate": "clock_hz"}
    wanted = ["id", "name", "maxWarpsPerMultiprocessor", *facts, *large, *kilo]
    frame = database.fetch("CUPTI_ACTIVITY_KIND_DEVICE", wanted).filter(pl.col("id").is_not_null())
    return frame.select(
        narrow("id").alias("device"),
        pl.Series("name", text_of(frame, "name", names), pl.String),
        *(narrow(old).alias(new) for old, new in facts.items()),
        *(pl.col(old).alias(new) for old, new in large.items()),
        # CUPTI counts kilobytes a second and kilohertz.
        *((pl.col(old) * 1000).alias(new) for old, new in kilo.items()),
        _product("maxWarpsPerMultiprocessor", "numThreadsPerWarp").alias("max_threads_per_sm"),
    ).unique("device", keep="first", maintain_order=True)


def _product(first: str, second: str) -> pl.Expr:
    """The product of two columns in 32 bits."""
    return (pl.col(first) * pl.col(second)).cast(pl.Int32, strict=False)


def _impossible(notes: ReadingNotes) -> list[HealthEntry]:
    if not notes.impossible:
        return []
    listed = ", ".join(f"{count:,} of {table}" for table, count in notes.impossible.items())
    message = f"Rows that end before they start, or have impossible times, are ignored: {listed}."
    return [HealthEntry("impossible-time", "warning", message)]
