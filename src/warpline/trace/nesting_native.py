"""The compiled passes of nesting (`nest.c`) through ctypes; see `nesting_numpy.py` for what each gives."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np

from warpline.native import library_of, load
from warpline.trace.arrays import Bools, Int64s

SOURCE: Final = Path(__file__).with_name("nest.c")
_INTEGERS = np.ctypeslib.ndpointer(np.int64, flags="C")
_MARKS = np.ctypeslib.ndpointer(np.bool_, flags="C")


@cache
def load_library() -> ctypes.CDLL | None:
    """The compiled passes, or None where they were not built from these sources."""
    library = load(library_of(SOURCE), SOURCE)
    if library is None:
        return None
    size, rows = ctypes.c_int64, _INTEGERS
    library.nest_parents.argtypes = [rows, rows, rows, size, size, rows, rows]
    library.nest_innermost.argtypes = [rows, rows, rows, rows, size, rows, rows, size, rows]
    library.nest_innermost.restype = None
    library.nest_nearest_marked.argtypes = [rows, _MARKS, size, rows]
    return library


def tree(library: ctypes.CDLL, lanes: Int64s, starts: Int64s, ends: Int64s, tick_ns: int) -> tuple[Int64s, Int64s]:
    """Parents and depths."""
    lanes, starts, ends = map(np.ascontiguousarray, (lanes, starts, ends))
    parents, depths = np.empty(len(starts), np.int64), np.empty(len(starts), np.int64)
    if not library.nest_parents(lanes, starts, ends, len(starts), tick_ns, parents, depths):
        raise MemoryError("no memory to nest the trace")
    return parents, depths


def innermost(
    library: ctypes.CDLL,
    lanes: Int64s,
    starts: Int64s,
    ends: Int64s,
    parents: Int64s,
    asked_lanes: Int64s,
    moments: Int64s,
) -> Int64s:
    """Position of the innermost interval around each moment."""
    lanes, starts, ends, parents = map(np.ascontiguousarray, (lanes, starts, ends, parents))
    asked_lanes, moments = np.ascontiguousarray(asked_lanes, np.int64), np.ascontiguousarray(moments, np.int64)
    found = np.empty(len(moments), np.int64)
    library.nest_innermost(lanes, starts, ends, parents, len(starts), asked_lanes, moments, len(moments), found)
    return found


def nearest_marked(library: ctypes.CDLL, parents: Int64s, marked: Bools) -> Int64s | None:
    """The nearest marked ancestors; None where some parent stands behind its child."""
    parents, marked = np.ascontiguousarray(parents), np.ascontiguousarray(marked)
    nearest = np.empty(len(parents), np.int64)
    return nearest if library.nest_nearest_marked(parents, marked, len(parents), nearest) else None
