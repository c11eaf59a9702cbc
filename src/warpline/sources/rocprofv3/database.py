"""A database of rocprofv3 or rocprof-sys (rocpd, the default of rocprofv3 since ROCm 7).

Every process writes tables of its own, `rocpd_region_00003fdc_92cb_…`, and views join those of a merged file under the
plain names. Ids are unique within one process. `stack_id` of an event is rocprofiler's correlation id; the column
`correlation_id` has what the program itself pushed.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
from msgspec import Struct
from msgspec.structs import replace

from warpline.errors import UnreadableFile
from warpline.sources.health import HealthEntry
from warpline.sources.kinds import SQLITE_MAGIC, Kind
from warpline.sources.rocprofv3.records import (
    COPIES,
    DISPATCHES,
    GPU_TYPE,
    REGIONS,
    ProcessRecording,
    RocmAgent,
    rows_of,
)
from warpline.sources.rows import Rows
from warpline.sources.sqlite.database import Database, open_database
from warpline.sources.sqlite.plain_file import plain_sqlite

TABLE = "rocpd_kernel_dispatch"
SUFFIX = re.compile(rf"^{TABLE}(?P<process>_.+|)$")
TIMES = {"start", "end"}

ROCPD = Kind(
    "rocpd",
    lambda head, _: head.startswith(SQLITE_MAGIC) and TABLE.encode() in head,
    ("_results.db",),
)
"""SQLite database of rocprofv3."""


def read_rocpd(path: Path) -> Rows:
    """Read a rocpd database, plain or packed."""
    with plain_sqlite(path) as plain, open_database(plain.path, path) as database:
        processes = [found["process"] for table in database.columns if (found := SUFFIX.match(table))]
        newer = [table for table in database.columns if SUFFIX.match(table) and not TIMES & {*database.columns[table]}]
        if not processes or newer:
            raise UnreadableFile(
                "unknown-schema",
                f"{path} is a rocpd database of an unknown schema: its kernels have no times",
                "record with rocprofv3, or export Kineto's JSON with torch.profiler",
            )
        recordings = [_recording(database, process) for process in processes]
        damage = [
            HealthEntry(
                "damaged-table", "error", f"The table {one.table} is read up to its row {one.rows}: {one.reason}."
            )
            for one in database.damage
        ]
        if damage and not any(len(one.dispatches) + len(one.copies) + len(one.regions) for one in recordings):
            raise UnreadableFile(
                "damaged-file",
                f"{path} has the tables of rocprofv3, but none can be read ({database.damage[0].reason})",
                "copy or record it again",
            )
        rows = rows_of(recordings, path)
        return Rows(rows.source, rows.tables, rows.meta, [*plain.health, *damage, *rows.health])


def _recording(database: Database, process: str) -> ProcessRecording:
    """The tables of one process."""

    def fetch(table: str, integers: tuple[str, ...], texts: tuple[str, ...] = ()) -> pl.DataFrame:
        return database.fetch(f"rocpd_{table}{process}", integers, texts)

    strings = fetch("string", ("id",), ("string",))
    events = _events(fetch("event", ("id", "stack_id", "parent_stack_id", "category_id"), ("extdata",)), strings)
    processes = fetch("info_process", ("id", "pid"), ("command",))
    pids = dict(zip(processes["id"], processes["pid"], strict=True))
    commands = {pid: text for pid, text in zip(processes["pid"], processes["command"], strict=True) if pid and text}
    threads = fetch("info_thread", ("id", "tid"))
    nodes = fetch("info_node", ("id",), ("hostname",))
    place = ("pid", "start", "end", "event_id")

    def with_events(frame: pl.DataFrame) -> pl.DataFrame:
        joined = frame.join(events, on="event_id", how="left", maintain_order="left")
        return joined.with_columns(pl.col("pid").replace(pids).alias("process"))

    symbols = fetch(
        "info_kernel_symbol", ("id", "arch_vgpr_count", "accum_vgpr_count"), ("display_name", "kernel_name")
    ).select(
        pl.col("id").alias("kernel_id"),
        pl.coalesce("display_name", "kernel_name").alias("name"),
        (pl.col("arch_vgpr_count") + pl.col("accum_vgpr_count").fill_null(0)).alias("registers"),
    )
    axes = ("grid_size_x", "grid_size_y", "grid_size_z", "workgroup_size_x", "workgroup_size_y", "workgroup_size_z")
    kernels = fetch(
        "kernel_dispatch", (*place, "agent_id", "queue_id", "stream_id", "kernel_id", "group_segment_size", *axes)
    ).join(symbols.unique("kernel_id"), on="kernel_id", how="left", maintain_order="left")
    copies = fetch("memory_copy", (*place, "src_agent_id", "dst_agent_id", "stream_id", "size"))
    regions = fetch("region", (*place, "tid", "name_id")).with_columns(
        pl.col("tid").replace(dict(zip(threads["id"], threads["tid"], strict=True)))
    )
    return ProcessRecording(
        with_events(kernels).select(_renamed(DISPATCHES)),
        with_events(copies).select(_renamed(COPIES)),
        with_events(
            regions.join(_named(strings, "name_id", "name"), on="name_id", how="left", maintain_order="left")
        ).select(_renamed(REGIONS)),
        _agents(fetch("info_agent", ("id", "type_index"), ("type", "name", "product_name", "extdata"))),
        nodes["hostname"][0] or "" if len(nodes) else "",
        commands,
        len(fetch("pmc_event", ("id",))) > 0,
    )


_COLUMNS = {
    "correlation": "stack_id",
    "parent": "parent_stack_id",
    "agent": "agent_id",
    "queue": "queue_id",
    "stream": "stream_id",
    "source_agent": "src_agent_id",
    "target_agent": "dst_agent_id",
    "bytes": "size",
    "lds_bytes": "group_segment_size",
    **{f"items_{axis}": f"grid_size_{axis}" for axis in "xyz"},
    **{f"block_{axis}": f"workgroup_size_{axis}" for axis in "xyz"},
}
"""How rocpd calls the columns of the records."""


def _renamed(columns: dict[str, pl.DataType]) -> list[pl.Expr]:
    return [pl.col(_COLUMNS.get(name, name)).alias(name) for name in columns]


def _named(strings: pl.DataFrame, key: str, name: str) -> pl.DataFrame:
    return strings.select(pl.col("id").alias(key), pl.col("string").alias(name)).unique(key)


def _events(events: pl.DataFrame, strings: pl.DataFrame) -> pl.DataFrame:
    """Columns ``event_id``, ``stack_id``, ``parent_stack_id``, ``category`` and ``message``, each event once."""
    named = events.join(_named(strings, "category_id", "category"), on="category_id", how="left", maintain_order="left")
    return named.select(
        pl.col("id").alias("event_id"),
        "stack_id",
        "parent_stack_id",
        pl.col("category").fill_null(""),
        pl.col("extdata").map_elements(_message, return_dtype=pl.String, skip_nulls=True).alias("message"),
    ).unique("event_id", keep="first")


def _message(extdata: str) -> str | None:
    """The text of a ROCTX marker."""
    try:
        return msgspec.json.decode(extdata, type=_Marker).message if '"message"' in extdata else None
    except msgspec.DecodeError:
        return None


class _Marker(Struct, frozen=True):
    message: str | None = None


def _agents(frame: pl.DataFrame) -> dict[int, RocmAgent]:
    """CPUs and GPUs by id."""
    return {row["id"]: _agent(row) for row in frame.drop_nulls("id").iter_rows(named=True)}


def _agent(row: dict[str, Any]) -> RocmAgent:
    try:
        more = msgspec.json.decode(row["extdata"] or "{}", type=RocmAgent)
    except msgspec.DecodeError:
        more = RocmAgent()
    return replace(
        more,
        type=GPU_TYPE if row["type"] == "GPU" else 0,
        logical_node_type_id=-1 if row["type_index"] is None else row["type_index"],
        name=row["name"] or "",
        product_name=row["product_name"] or "",
    )
