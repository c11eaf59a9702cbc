"""Keeps the cache folder within its size: what was unused for longest goes first, and so do abandoned temporaries.

Parsed traces, nsys exports and everything that is being written count. Only names that warpline gives are
touched, and nothing is removed that a process is writing or has locked; a process that has opened an entry keeps it.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from warpline.sources.cache_folder import cache_folder, limit_bytes, traces_folder
from warpline.sources.private_files import REMOVING, WRITING, discard, discard_abandoned, is_own_folder, remove

STALE_SECONDS = 3600
"""A temporary of this age is removed even where locks do not work."""
MANIFEST = "manifest.json"
EXPORT = re.compile(r".+-[0-9a-f]{16,40}\.sqlite")
"""The SQLite export of a report, in the cache folder itself, which may have other files."""


class _Item(Struct, frozen=True):
    used_s: float
    size_bytes: int
    path: Path
    is_temporary: bool


def make_room(needed_bytes: int = 0) -> None:
    """Remove abandoned temporaries, then the least recently used entries until the rest and what is needed fit."""
    kept: list[_Item] = []
    total = needed_bytes
    for item in _items():
        if item.is_temporary and _removed_as_stale(item):
            continue
        total += item.size_bytes
        if not item.is_temporary:
            kept.append(item)
    limit = limit_bytes()
    for item in sorted(kept, key=lambda item: item.used_s):
        if total <= limit:
            return
        if not EXPORT.fullmatch(item.path.name):
            discard(item.path)
        elif not discard_abandoned(item.path):
            continue  # SQLite opens an export by its name, so its reader has locked it
        total -= item.size_bytes


def _items() -> Iterator[_Item]:
    if not is_own_folder(cache_folder()):  # what a link leads to is not ours to remove
        return
    if is_own_folder(traces_folder()):
        for entry in _listed(traces_folder()):
            yield from _item(entry)
    for entry in _listed(cache_folder()):
        if EXPORT.fullmatch(entry.name) or _is_temporary(entry.name):
            yield from _item(entry)


def _listed(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _item(entry: os.DirEntry[str]) -> Iterator[_Item]:
    """The entry with its size and time; nothing if another process has just removed it."""
    try:
        state = entry.stat(follow_symlinks=False)
    except OSError:
        return
    size, used = state.st_size, state.st_mtime
    if stat.S_ISDIR(state.st_mode):
        size = 0
        for inside in _listed(Path(entry.path)):
            try:
                within = inside.stat(follow_symlinks=False)
            except OSError:
                continue
            size += within.st_size
            if inside.name == MANIFEST:
                used = within.st_mtime
    yield _Item(used, size, Path(entry.path), _is_temporary(entry.name))


def _is_temporary(name: str) -> bool:
    return name.startswith((WRITING, REMOVING))


def _removed_as_stale(item: _Item) -> bool:
    """Remove what no process is writing any more: a lock ends with its process."""
    if item.path.name.startswith(REMOVING) or time.time() - item.used_s > STALE_SECONDS:
        remove(item.path)
        return True
    return discard_abandoned(item.path)
