"""Caches parsed traces on disk as Arrow, by content: a second open reads columns and parses no JSON.

An entry is a folder with one file a table and a manifest with their checksums. It is written beside and renamed into
place, so a reader never sees half of one, and a reader keeps what it has opened when the entry is replaced or removed.
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
from collections.abc import Callable
from functools import cache as found_once
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO
from weakref import WeakSet

import polars as pl

from warpline.sources.cache_folder import limit_bytes, traces_folder
from warpline.sources.cache_limit import MANIFEST, make_room
from warpline.sources.private_files import (
    create_file,
    open_file,
    open_folder,
    private_folder,
    publish,
    temporary_folder,
)
from warpline.sources.zlib_engine import engine
from warpline.trace.schema import TABLES
from warpline.trace.trace import Trace

MAX_MANIFEST_BYTES = 1 << 20
READ_AT_ONCE_BYTES = 1 << 20
"""Smaller tables are read when the trace is opened; of the others the file is held open until it is read."""
MAX_HELD_FILES = 128
"""Of all open traces: a process may have only so many files open. Beyond that, tables are read at once."""

Loader = Callable[[], pl.DataFrame]
_held: WeakSet[BinaryIO] = WeakSet()


def load(name: str, file: Path) -> Trace | None:
    """The trace of that entry, with larger tables loaded on first use; None if there is no such entry."""
    try:
        folder = open_folder(traces_folder() / name)
        try:
            with open_file(MANIFEST, folder) as opened:
                manifest = json.loads(opened.read(MAX_MANIFEST_BYTES))
                if manifest["about"] != _about(name):
                    return None
                source = manifest["source"]
                tables = {table: _table(folder, table, manifest["tables"][table]) for table in TABLES}
                with contextlib.suppress(OSError):  # a folder that cannot be written can be read
                    os.utime(opened.fileno())
        finally:
            os.close(folder)
    except (OSError, ValueError, KeyError, TypeError, RecursionError, pl.exceptions.PolarsError):
        return None
    except pl.exceptions.PanicException:
        return None
    return Trace(file, source, tables) if isinstance(source, str) else None


def store(name: str, trace: Trace) -> None:
    """Store the trace under that name, and evict entries that no longer fit."""
    needed = sum(int(trace.stored(table).estimated_size()) for table in TABLES)
    if needed > limit_bytes():
        return
    with contextlib.suppress(OSError, pl.exceptions.PolarsError):
        folder = private_folder(traces_folder())
        make_room(needed)
        with temporary_folder(folder) as temporary:
            checksums = {}
            for table in TABLES:
                path = temporary / f"{table}.arrow"
                with create_file(path) as file:
                    trace.stored(table).write_ipc(file, compression="uncompressed")
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


def _table(folder: int, table: str, checksum: Any) -> pl.DataFrame | Loader:
    """A table of the entry: checked, and read or held open."""
    file = open_file(f"{table}.arrow", folder)
    try:
        size, expected = checksum
        if _size(file) != size or _checksum(file) != expected:
            raise ValueError(f"{table} is damaged")
        file.seek(0)
        schema = pl.read_ipc_schema(file)
        if schema != {name: column.dtype for name, column in TABLES[table].columns.items()}:
            raise ValueError(f"{table} has other columns")
        if size < READ_AT_ONCE_BYTES or len(_held) >= MAX_HELD_FILES:
            return _read(file)
    except BaseException:
        file.close()
        raise
    _held.add(file)
    return _Later(file)


class _Later:
    """A table that is read when it is first used, once, also if two threads ask for it at the same time."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._lock = Lock()
        self._table: pl.DataFrame | None = None

    def __call__(self) -> pl.DataFrame:
        with self._lock:  # Two readers of one file would move each other's position.
            if self._table is None:
                self._table = _read(self._file)
            return self._table


def _read(file: BinaryIO) -> pl.DataFrame:
    with file:
        file.seek(0)
        return pl.read_ipc(file)


def _size(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size


def _checksum(file: BinaryIO) -> int:
    if not _size(file):
        return 0
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return int(engine.crc32(content))
