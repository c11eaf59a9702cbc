"""An nsys export as rows."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from warpline.errors import UnreadableFile
from warpline.sources.nsys.columns import ReadingNotes
from warpline.sources.nsys.devices import read_devices, read_ordinals
from warpline.sources.nsys.extras import read_counters, read_events, read_faults, read_memory, read_syncs
from warpline.sources.nsys.facts import read_facts
from warpline.sources.nsys.gpu import read_gpu
from warpline.sources.nsys.host import (
    fetch_calls,
    fetch_os_calls,
    fetch_overhead,
    fetch_ranges,
    finish_calls,
    finish_os_calls,
    finish_overhead,
    finish_ranges,
)
from warpline.sources.nsys.parquet_folder import EXPORT_AGAIN as PARQUET_AGAIN
from warpline.sources.nsys.parquet_folder import ParquetTables
from warpline.sources.nsys.profile_health import health
from warpline.sources.nsys.report_file import EXPORT_AGAIN, export_report
from warpline.sources.nsys.strings import Strings
from warpline.sources.nsys.tables import Tables
from warpline.sources.nsys.threads import read_threads
from warpline.sources.rows import Rows
from warpline.sources.sqlite.database import open_database
from warpline.sources.sqlite.plain_file import plain_sqlite

KNOWN_TABLES = {
    *("META_DATA_EXPORT", "EXPORT_META_DATA", "META_DATA_CAPTURE", "ANALYSIS_DETAILS", "StringIds", "NVTX_EVENTS"),
    *("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_MEMCPY", "OSRT_API"),
    *("TARGET_INFO_SESSION_START_TIME", "TARGET_INFO_GPU", "TARGET_INFO_SYSTEM_ENV"),
}
"""A file with none of these tables is not an nsys export."""
RPD_TABLE = "rocpd_api"
"""Calls in a database of rocmProfileData."""


def read_nsys_report(path: Path) -> Rows:
    """Read the rows of an nsys report, which nsys exports first."""
    return read_nsys(export_report(path))


def read_nsys_parquet(folder: Path) -> Rows:
    """Read the rows of an nsys export as Parquet files."""
    return _rows(ParquetTables.of(folder), folder, PARQUET_AGAIN)


def read_nsys(path: Path) -> Rows:
    """Read the rows of an nsys export in SQLite, plain or packed."""
    with plain_sqlite(path, EXPORT_AGAIN) as plain, open_database(plain.path, path, EXPORT_AGAIN) as database:
        if not (database.columns.keys() & KNOWN_TABLES):
            by = " (it is a database of rpd, rocmProfileData)" if RPD_TABLE in database.columns else ""
            raise UnreadableFile(
                "not-nsys",
                f"{path} is an SQLite file without a single table of Nsight Systems{by}",
                "give an export made with: nsys export --type sqlite REPORT.nsys-rep",
            )
        rows = _rows(database, path, EXPORT_AGAIN)
        rows.health[:0] = plain.health
        return rows


def _rows(database: Tables, path: Path, again: str) -> Rows:
    notes = ReadingNotes()
    strings = Strings.of(database)
    ordinals = read_ordinals(database, notes)
    calls, os_calls = fetch_calls(database, notes), fetch_os_calls(database, notes)
    overhead, ranges = fetch_overhead(database, notes), fetch_ranges(database)
    referenced = [frame["globalTid"] for frame in (calls, os_calls, overhead, ranges)]
    threads = read_threads(database, strings, [*referenced, ranges["endGlobalTid"]])
    tables: dict[str, pl.DataFrame] = {
        "gpu": read_gpu(database, strings, ordinals, notes),
        "api": finish_calls(calls, strings, threads, notes),
        "ranges": finish_ranges(ranges, strings, threads, notes),
        "syncs": read_syncs(database, ordinals, notes),
        "events": read_events(database, ordinals),
        "osrt": finish_os_calls(os_calls, strings, threads),
        "memory": read_memory(database, ordinals),
        "overhead": finish_overhead(overhead, strings, threads),
        "faults": read_faults(database, ordinals, notes),
        "counters": read_counters(database, ordinals),
        "threads": threads.table,
        "devices": read_devices(database, ordinals),
    }
    facts = read_facts(database)
    if database.damage and not any(frame.height for frame in tables.values()):
        raise UnreadableFile(
            "damaged-file",
            f"{path} has the tables of an nsys export, but none can be read ({database.damage[0].reason})",
            again,
        )
    entries = health(database, strings, facts, tables, notes)
    meta = facts.meta()
    if notes.api_suffixes:
        meta["api_suffixes"] = json.dumps(notes.api_suffixes, sort_keys=True)
    return Rows("nsys", tables, meta, entries)
