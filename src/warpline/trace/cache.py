"""Caches parsed traces on disk as Arrow, by content: a second open reads columns and parses no JSON.

An entry is a folder with one file a table and a manifest with their checksums. It is written beside and renamed into
place, so a reader never sees half of one. It is read as a whole, so that nobody can change or remove it later.
The folder is bounded: see `warpline.sources.cache_limit`. Nothing here may fail an open: an entry that is not exactly
what this version would write is a cache miss, and so is a folder that cannot be read or written. Tables are not
compressed, so that they are read at the speed of memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import mmap
import os
from functools import cache as found_once
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl

from warpline.sources.cache_folder import limit_bytes, opened_traces, writable_traces
from warpline.sources.cache_limit import MANIFEST, make_room
from warpline.sources.private_files import (
    create_file,
    open_file,
    opened_folder,
    publish,
    temporary_folder,
)
from warpline.sources.zlib_engine import engine
from warpline.trace.schema import TABLES
from warpline.trace.table import TraceTable
from warpline.trace.trace import Trace

MAX_MANIFEST_BYTES = 1 << 20


def load(name: str, file: Path) -> Trace | None:
    """The trace of that entry; None if there is no such entry."""
    try:
        with (
            opened_traces() as traces,
            opened_folder(name, traces) as folder,
            open_file(MANIFEST, folder) as opened,
        ):
            manifest = json.loads(opened.read(MAX_MANIFEST_BYTES))
            if manifest["about"] != _about(name):
                return None
            source = manifest["source"]
            tables = {table: _table(folder, table, manifest["tables"][table]) for table in TABLES}
            with contextlib.suppress(OSError):  # a folder that cannot be written can be read
                os.utime(opened.fileno())
    except (OSError, ValueError, KeyError, TypeError, RecursionError, pl.exceptions.PolarsError):
        return None
    except pl.exceptions.PanicException:
        return None
    return Trace.of_tables(file, source, tables) if isinstance(source, str) else None


def store(name: str, trace: Trace) -> None:
    """Store the trace under that name, and evict entries that no longer fit."""
    needed = sum(int(table.stored.estimated_size()) for table in trace.tables.values())
    if needed > limit_bytes():
        return
    with contextlib.suppress(OSError, pl.exceptions.PolarsError):
        folder = writable_traces()
        make_room(needed)
        with temporary_folder(folder) as temporary:
            checksums = {}
            for table, rows in trace.tables.items():
                path = temporary / f"{table}.arrow"
                with create_file(path) as file:
                    rows.stored.write_ipc(file, compression="uncompressed")
                with open_file(path) as file:
                    checksums[table] = [_size(file), _checksum(file)]
            manifest = {"about": _about(name), "source": trace.source, "tables": checksums}
            with create_file(temporary / MANIFEST) as file:
                file.write(json.dumps(manifest).encode())
            publish(temporary, folder / name)
        make_room()


def _about(name: str) -> dict[str, str]:
    """What an entry must agree with: a copy under another name, or tables of another version, are not this entry."""
    return {"name": name, "polars": pl.__version__, "schema": _schema_digest()}


@found_once
def _schema_digest() -> str:
    columns = [
        [table, name, str(column.dtype)] for table, kind in TABLES.items() for name, column in kind.columns.items()
    ]
    return hashlib.blake2b(json.dumps(columns).encode(), digest_size=8).hexdigest()


def _table(folder: int, table: str, checksum: Any) -> TraceTable:
    """A table of the entry, checked."""
    with open_file(f"{table}.arrow", folder) as file:
        size, expected = checksum
        if _size(file) != size or _checksum(file) != expected:
            raise ValueError(f"{table} is damaged")
        frame = pl.read_ipc(file)
    if dict(frame.schema) != {name: column.dtype for name, column in TABLES[table].columns.items()}:
        raise ValueError(f"{table} has other columns")
    return TABLES[table](frame)


def _size(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size


def _checksum(file: BinaryIO) -> int:
    if not _size(file):
        return 0
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return int(engine.crc32(content))
