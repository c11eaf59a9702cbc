"""Reads the ranks of a job, each by itself: from the stored summary, else from the file; in a pool of processes or on
a Ray cluster."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import Literal

from msgspec import Struct

from warpline.capture.this_process import usable_cores
from warpline.errors import UsageError, WarplineError
from warpline.ranks.summary import RankSummary, load_summary, store_summary, summarise
from warpline.sources.cache_folder import content_of
from warpline.trace.open import open_trace

POOL_BYTES = 64 << 20
"""Below this size of all files together, starting processes takes longer than it saves."""
OPEN_BYTES = 1 << 20
"""Opening a file takes at least as long as reading so many bytes of it."""

Engine = Literal["pool", "ray"]


class ReadRank(Struct, frozen=True):
    """One file: its summary, or why there is none."""

    summary: RankSummary | None
    problem: str = ""


def read_rank(place: str, cache: bool = True) -> ReadRank:
    """The summary of one file or URL; it is stored, so that the file is not read again."""
    try:
        return ReadRank(_read_remote(place, cache) if "://" in place else _read_local(Path(place), cache))
    except WarplineError as error:
        return ReadRank(None, error.message)
    except OSError as error:
        return ReadRank(None, str(error))


def _read_local(file: Path, cache: bool) -> RankSummary:
    content = content_of(file) if cache else None
    found = load_summary(content.key) if content else None
    if found is None:
        found = summarise(open_trace(file, cache=False))
        if content and content.is_unchanged():
            store_summary(content.key, found)
    return found


def _read_remote(url: str, cache: bool) -> RankSummary:
    from warpline.ranks.remote import fetched, key  # noqa: PLC0415 - fsspec is an optional package

    name = key(url)
    found = load_summary(name) if cache else None
    if found is None:
        with fetched(url) as file:
            found = summarise(open_trace(file, cache=False))
        if cache and key(url) == name:  # else it changed while it was fetched
            store_summary(name, found)
    return found


def read_ranks(
    places: Sequence[str], workers: int | None = None, cache: bool = True, engine: Engine = "pool"
) -> list[ReadRank]:
    """The summaries of all files or URLs, in their order. Each process reads one file at a time."""
    found = {place: summary for place in places if cache and (summary := _stored(place)) is not None}
    missing = [place for place in places if place not in found]
    count = min(workers or _default_workers(missing), len(missing))
    if engine == "pool" and count <= 1:
        results = [read_rank(place, cache) for place in missing]
    else:
        read = _on_ray(missing, cache) if engine == "ray" else in_pool(_packed, missing, count, cache)
        results = [ReadRank(RankSummary.from_bytes(content) if content else None, problem) for content, problem in read]
    by_place = dict(zip(missing, results, strict=True))
    for place, result in by_place.items():
        if engine == "ray" and cache and result.summary is not None:
            _store(place, result.summary)
    return [ReadRank(found[place]) if place in found else by_place[place] for place in places]


def _stored(place: str) -> RankSummary | None:
    """The summary of a URL that is stored here, whichever machine read it. The key of a local file takes reading the
    file, which is left to the workers."""
    if "://" not in place:
        return None
    from warpline.ranks.remote import key  # noqa: PLC0415 - fsspec is an optional package

    try:
        return load_summary(key(place))
    except OSError:
        return None


def _store(place: str, summary: RankSummary) -> None:
    """Keep the summary of a URL here, too."""
    if "://" in place:
        from warpline.ranks.remote import key  # noqa: PLC0415 - fsspec is an optional package

        name = key(place)
        if load_summary(name) is None:  # else a worker with the same cache folder was first
            store_summary(name, summary)


def _default_workers(places: Sequence[str]) -> int:
    total = sum(Path(place).stat().st_size + OPEN_BYTES for place in places if Path(place).exists())
    return usable_cores() if total > POOL_BYTES else 1


Read = Callable[[str, bool], tuple[bytes, str]]
"""What a worker runs: the summary of a place, or why there is none."""


def in_pool(read: Read, places: Sequence[str], workers: int, cache: bool) -> list[tuple[bytes, str]]:
    """What the workers of a pool return; if one is killed, each file that is left gets a process of its own."""
    found: list[tuple[bytes, str]] = []
    try:
        # Threads of polars do not survive a fork. With max_tasks_per_child a pool may wait for ever (cpython#115634).
        with ProcessPoolExecutor(workers, get_context("spawn"), initializer=_end_with_parent) as pool:
            for result in pool.map(read, places, [cache] * len(places)):
                found.append(result)
    except BrokenProcessPool:
        if len(places) == 1:
            return [(b"", "the process that read it was killed")]
        for place in places[len(found) :]:
            found += in_pool(read, [place], 1, cache)
    return found


def _end_with_parent() -> None:
    """Let this worker end when its parent does, however that ends: an idle worker does not notice by itself."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C reaches all processes; only the parent answers
    parent = parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os.kill(os.getpid(), signal.SIGTERM)

    Thread(target=watch, daemon=True).start()


def _on_ray(places: Sequence[str], cache: bool) -> list[tuple[bytes, str]]:
    try:
        from warpline.ranks.ray_engine import run_on_ray  # noqa: PLC0415 - an optional package
    except ModuleNotFoundError as error:
        raise UsageError("no-ray", "Ray is not installed", "pip install ray") from error
    return run_on_ray(_packed, places, cache)


def _packed(place: str, cache: bool) -> tuple[bytes, str]:
    """What a worker returns."""
    read = read_rank(place, cache)
    return (read.summary.content if read.summary else b""), read.problem
