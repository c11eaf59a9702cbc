"""Caches parsed traces on disk as Arrow, by content: a second open maps columns and parses no JSON.

An entry is a folder with one file a table and a manifest with their checksums. It is written beside and
renamed into place, so a reader never sees half of one; a damaged entry is dropped and built anew. The folder
is bounded: the entries unused for longest go first. Nothing here may fail an open: a cache that cannot be
read or written is a cache miss. Tables are not compressed, so that
opening one maps it and copies next to nothing.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import cache as read_once
from functools import partial
from pathlib import Path

import polars as pl

from warpline.sources.cache_folder import traces_folder
from warpline.sources.zlib_engine import engine
from warpline.trace.schema import TABLES
from warpline.trace.trace import Trace

LIMIT_BYTES = int(os.environ.get("WARPLINE_CACHE_BYTES", str(4 << 30)))


def load(name: str, file: Path) -> Trace | None:
    """The trace of that entry, with larger tables loaded on first use; None if there is no entry."""
    entry = traces_folder() / name
    try:
        manifest = json.loads((entry / "manifest.json").read_text())
        if manifest["polars"] != pl.__version__:
            return None
        for table in TABLES:
            if _checksum(entry / f"{table}.arrow") != manifest["tables"][table]:
                raise ValueError(f"{table} is damaged")
        tables: dict[str, pl.DataFrame | Callable[[], pl.DataFrame]] = {
            table: read_once(partial(_read_table, entry / f"{table}.arrow")) for table in TABLES
        }
        trace = Trace(file, str(manifest["source"]), tables)
        for small in ("meta", "health", "steps", "devices", "threads"):
            trace.table(small)
        os.utime(entry / "manifest.json")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, pl.exceptions.PolarsError):
        shutil.rmtree(entry, ignore_errors=True)
        return None
    return trace


def store(name: str, trace: Trace) -> None:
    """Store the trace under that name, and evict entries that no longer fit."""
    with contextlib.suppress(OSError):
        traces_folder().mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=".writing-", dir=traces_folder()))
        try:
            checksums = {}
            for table in TABLES:
                path = temporary / f"{table}.arrow"
                trace.table(table).write_ipc(path, compression="uncompressed")
                checksums[table] = _checksum(path)
            manifest = {"source": trace.source, "polars": pl.__version__, "tables": checksums}
            (temporary / "manifest.json").write_text(json.dumps(manifest))
            shutil.rmtree(traces_folder() / name, ignore_errors=True)
            temporary.rename(traces_folder() / name)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        _evict()


def _read_table(path: Path) -> pl.DataFrame:
    return pl.read_ipc(path)


def _checksum(path: Path) -> int:
    with path.open("rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return 0
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return int(engine.crc32(content))


def _evict() -> None:
    """Remove the least recently used entries until the rest fits, and leftovers of interrupted writers."""
    entries = []
    for entry in traces_folder().iterdir():
        manifest = entry / "manifest.json"
        used = manifest.stat().st_mtime if manifest.exists() else 0.0
        if entry.name.startswith(".writing-"):
            continue
        entries.append((used, sum(file.stat().st_size for file in entry.iterdir()), entry))
    total = sum(size for _, size, _ in entries)
    for _, size, entry in sorted(entries, key=lambda item: item[0]):
        if total <= LIMIT_BYTES:
            return
        shutil.rmtree(entry, ignore_errors=True)
        total -= size
