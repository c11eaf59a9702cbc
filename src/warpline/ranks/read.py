"""Reads the ranks of a job, each by itself: from the stored summary, else from the file; in a pool of processes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from msgspec import Struct

from warpline.errors import WarplineError
from warpline.ranks.summary import RankSummary, load_summary, store_summary, summarise
from warpline.trace.open import open_trace

POOL_BYTES = 64 << 20
"""Below this size of all files together, starting processes takes longer than it saves."""


class ReadRank(Struct, frozen=True):
    """One file: its summary, or why there is none."""

    file: Path
    summary: RankSummary | None
    problem: str = ""


def read_rank(file: Path, cache: bool = True) -> ReadRank:
    """The summary of one file; it is stored, so that the file is not read again."""
    found = load_summary(file) if cache else None
    if found is None:
        try:
            found = summarise(open_trace(file, cache=False))
        except WarplineError as error:
            return ReadRank(file, None, error.message)
        if cache:
            store_summary(file, found)
    return ReadRank(file, found)


def read_ranks(files: Sequence[Path], workers: int | None = None, cache: bool = True) -> list[ReadRank]:
    """The summaries of all files, in their order. Each process reads one file at a time."""
    count = min(workers or _default_workers(files), len(files))
    if count <= 1:
        return [read_rank(file, cache) for file in files]
    return list(_in_pool(files, count, cache))


def _default_workers(files: Sequence[Path]) -> int:
    total = sum(file.stat().st_size for file in files if file.exists())
    return len(os.sched_getaffinity(0)) if total > POOL_BYTES else 1


def _in_pool(files: Sequence[Path], workers: int, cache: bool) -> Iterator[ReadRank]:
    # Threads of polars do not survive a fork. A process that ends after a few files gives its memory back.
    with ProcessPoolExecutor(workers, get_context("spawn"), max_tasks_per_child=16) as pool:
        futures = [pool.submit(_packed, file, cache) for file in files]
        for file, future in zip(files, futures, strict=True):
            content, problem = future.result()
            yield ReadRank(file, RankSummary.from_bytes(content) if content else None, problem)


def _packed(file: Path, cache: bool) -> tuple[bytes, str]:
    """What a worker returns: frames of polars travel as Parquet."""
    read = read_rank(file, cache)
    return (read.summary.to_bytes() if read.summary else b""), read.problem
