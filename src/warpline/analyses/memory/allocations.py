"""The allocations and frees of each device of a trace, in order of time, with the op, module and line of each."""

from __future__ import annotations

from typing import Literal

import numpy as np
import polars as pl
from msgspec import Struct

from warpline.analyses.user_frames import UserFrames
from warpline.trace.arrays import NONE, Bools, Int64s, ids, integers
from warpline.trace.nesting import Nest, nearest_marked
from warpline.trace.trace import Trace

Counted = Literal["tensors", "CUDA allocations"]
"""What the sizes are: of tensors in the framework's allocator, or of what CUDA itself was asked for."""

DEVICE_TYPES = {0: "cpu", 1: "cuda", 6: "hip"}
"""torch's DeviceType."""
PLACES = ("op", "module", "line")
"""Columns of `Allocations.places`."""


class Allocations(Struct, frozen=True):
    """Allocations and frees of one device, in order of time."""

    device: str
    """cuda:0, cpu."""
    counted: Counted
    time_ns: Int64s
    bytes: Int64s
    """Size; negative where freed."""
    address: Int64s | None
    """None where the source does not tell: then nothing says which allocation a free ends."""
    allocated: Int64s
    """Bytes in use after each event."""
    reserved: Int64s | None
    """Bytes that the framework's allocator holds after each event, where it tells."""
    start_bytes: int
    """In use before the first event."""
    start_known: bool
    """Whether `allocated` includes what was allocated before the recording."""
    places: pl.DataFrame
    """`op`, `module` and `line` of each event, as text; null where unknown."""

    def __len__(self) -> int:
        return len(self.time_ns)


def allocations_of(trace: Trace) -> list[Allocations]:
    """One entry per device, GPUs first."""
    table = trace.stored("memory")
    wanted = np.flatnonzero(integers(table["bytes"], 0) != 0)
    order = wanted[np.argsort(integers(table["time_ns"])[wanted], kind="stable")]
    rows = table[order]
    kinds, numbers = integers(rows["device_type"], 0), integers(rows["device"])
    places = _places(trace, rows)
    found = []
    for kind, number in sorted(set(zip(kinds.tolist(), numbers.tolist(), strict=True)), key=_gpus_first):
        mine = np.flatnonzero((kinds == kind) & (numbers == number))
        found.append(_of_device(_named(kind, number), rows[mine], places[mine], trace.source))
    return found


def _gpus_first(key: tuple[int, int]) -> tuple[bool, int, int]:
    kind, number = key
    return kind == 0, kind, number


def _named(kind: int, number: int) -> str:
    name = DEVICE_TYPES.get(kind, f"device type {kind}")
    return name if kind == 0 or number < 0 else f"{name}:{number}"


def _of_device(device: str, rows: pl.DataFrame, places: pl.DataFrame, source: str) -> Allocations:
    changes = integers(rows["bytes"], 0)
    totals = rows["allocated_bytes"]
    # A profiler of 2021 wrote no totals; some write zeros for devices that they do not follow.
    known = len(totals) > 0 and not totals.null_count() and bool((totals > 0).any())
    if known:
        allocated = integers(totals)
    else:
        allocated = np.cumsum(changes)
        allocated -= min(int(allocated.min()), 0)
    moments = integers(rows["time_ns"])
    # What a program holds when a capture range begins, nsys lists at its time 0: then the totals are whole.
    before = int((moments == 0).sum()) if source == "nsys" else 0
    held = rows["reserved_bytes"]
    has_reserved = not held.null_count() and bool((held > 0).any())
    return Allocations(
        device,
        "CUDA allocations" if source == "nsys" else "tensors",
        moments,
        changes,
        integers(rows["address"]) if not rows["address"].null_count() else None,
        allocated,
        integers(held) if has_reserved else None,
        int(allocated[before - 1]) if before else int(allocated[0] - changes[0]),
        known or before > 0,
        places,
    )


def _places(trace: Trace, rows: pl.DataFrame) -> pl.DataFrame:
    """The outermost op, the module and the user's line at each event."""
    threads, moments = integers(rows["thread"]), integers(rows["time_ns"])
    if trace.source == "nsys":
        threads = _calling_threads(trace, moments)
        return pl.DataFrame({"op": _range_names(trace, threads, moments), **_no_places(len(rows), "module", "line")})
    ops = trace.stored("ops")
    nest = _nest(ops, integers(ops["parent"]))
    inner = nest.innermost(threads, moments)
    parents = integers(ops["parent"])
    outer = np.append(nearest_marked(parents, parents == NONE), NONE)[inner]
    return pl.DataFrame(
        {
            "op": ops["name"].gather(ids(outer)).cast(pl.String),
            "module": ops["module"].gather(ids(inner)).cast(pl.String),
            "line": UserFrames(trace).sites(threads, moments),
        }
    )


def _no_places(count: int, *names: str) -> dict[str, pl.Series]:
    return {name: pl.Series([None] * count, dtype=pl.String) for name in names}


def _calling_threads(trace: Trace, moments: Int64s) -> Int64s:
    """The thread whose API call was running: nsys records a time for an allocation, but no thread."""
    starts, ends, threads = trace.api.start_ns, trace.api.end_ns, trace.api.thread
    if not len(starts):
        return np.full(len(moments), NONE, np.int64)
    at = np.searchsorted(starts, moments, side="right") - 1
    running: Bools = (at >= 0) & (ends[at] >= moments)
    return np.where(running, threads[at], NONE)


def _range_names(trace: Trace, threads: Int64s, moments: Int64s) -> pl.Series:
    """The innermost NVTX range around each moment."""
    ranges = (
        trace.stored("ranges")
        .with_row_index("row")
        .filter(pl.col("thread").is_not_null() & pl.col("end_ns").is_not_null() & (pl.col("style") != "gpu"))
    )
    if not len(ranges):
        return _no_places(len(moments), "op")["op"]
    parents = np.full(len(trace.ranges) + 1, NONE, np.int64)
    parents[integers(ranges["row"])] = np.arange(len(ranges))
    nest = _nest(ranges, parents[integers(ranges["parent"])])
    return ranges["name"].gather(ids(nest.innermost(threads, moments))).cast(pl.String)


def _nest(table: pl.DataFrame, parents: Int64s) -> Nest:
    lanes, starts, ends = (integers(table[name]) for name in ("thread", "start_ns", "end_ns"))
    return Nest(lanes, starts, ends, parents, integers(table["depth"], 0))
