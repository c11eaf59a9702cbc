"""Drops warpline's own frames from a recording: what it does inside the program is never evidence about the program."""

from __future__ import annotations

import numpy as np
import polars as pl

from warpline.intervals import union
from warpline.trace.arrays import Bools, integers
from warpline.trace.names import rows_like

THREAD_START = r"^threading\.py\("
"""Frames between the start of a thread and its function."""


def without_own_frames(python: pl.DataFrame, own: Bools) -> pl.DataFrame:
    """The frames without those of `warpline.capture`, given as `own`, and what they call; its watching thread goes
    altogether."""
    gone = own | _within(python, own)
    starting = rows_like(python, THREAD_START)
    threads = integers(python["thread"])
    busy = np.unique(threads[~gone & ~starting])
    watching = np.isin(threads, threads[own]) & ~np.isin(threads, busy)
    return python.filter(~(gone | watching))


def _within(python: pl.DataFrame, own: Bools) -> Bools:
    """Frames that lie within one of these on the same thread."""
    threads, starts, ends = (integers(python[name]) for name in ("thread", "start_ns", "end_ns"))
    result = np.zeros(len(python), bool)
    for thread in np.unique(threads[own]).tolist():
        rows = np.flatnonzero(threads == thread)
        mine = rows[own[rows]]
        spans = union(starts[mine], ends[mine])
        slot = np.searchsorted(spans.starts, starts[rows], side="right") - 1
        result[rows] = (slot >= 0) & (ends[rows] <= spans.ends[slot])
    return result
