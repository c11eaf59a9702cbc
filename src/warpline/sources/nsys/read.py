"""An nsys export as rows."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from warpline.sources.nsys.columns import Notes
from warpline.sources.nsys.database import open_database
from warpline.sources.nsys.devices import read_devices, read_ordinals
from warpline.sources.nsys.extras import read_counters, read_events, read_faults, read_memory, read_syncs
from warpline.sources.nsys.gpu import read_gpu
from warpline.sources.nsys.host import (
    fetch_calls,
    fetch_os_calls,
    fetch_overhead,
    finish_calls,
    finish_os_calls,
    finish_overhead,
)
from warpline.sources.nsys.ranges import fetch_ranges, finish_ranges
from warpline.sources.nsys.strings import Strings
from warpline.sources.nsys.threads import read_threads
from warpline.sources.nsys.unpack import plain_sqlite
from warpline.sources.rows import Rows


def read_nsys(path: Path) -> Rows:
    """The rows of an nsys SQLite export, plain or gzipped."""
    notes = Notes()
    with plain_sqlite(path) as plain, open_database(plain) as database:
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
            "counters": read_counters(database),
            "threads": threads.table,
            "devices": read_devices(database, ordinals),
        }
        meta = {"producer": "nsys", "api_suffixes": json.dumps(notes.api_suffixes, sort_keys=True)}
        started = database.fetch("TARGET_INFO_SESSION_START_TIME", ["utcEpochNs"])["utcEpochNs"].drop_nulls()
        if len(started):
            meta["epoch_ns"] = str(started[0])
        return Rows("nsys", tables, meta)
