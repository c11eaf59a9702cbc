"""The allocations and frees of each device of a trace, in order of time, with the op, module and line of each."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import polars as pl
from msgspec import Struct

from warpline.analyses.user_frames import UserFrames
from warpline.trace.arrays import NONE, Int64s
from warpline.trace.nesting import Nest, outermost
from warpline.trace.schema import Memory
from warpline.trace.table import Names, filled
from warpline.trace.trace import Trace

Counted = Literal["tensors", "CUDA allocations"]
"""What the sizes are: of tensors in the framework's allocator, or of what CUDA itself was asked for."""

DEVICE_TYPES = {0: "cpu", 1: "cuda", 6: "hip"}
"""torch's DeviceType."""
CURVE_POINTS = 1_000
"""Points of a curve that is drawn."""
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


class MemoryCurve(Struct, frozen=True):
    """Points in order of time; each holds until the next."""

    time_ns: Int64s
    allocated_bytes: Int64s
    reserved_bytes: Int64s | None

    def __len__(self) -> int:
        return len(self.time_ns)

    def to_dict(self) -> dict[str, Any]:
        """Lists, for JSON."""
        return {
            "time_ns": self.time_ns.tolist(),
            "allocated_bytes": self.allocated_bytes.tolist(),
            "reserved_bytes": None if self.reserved_bytes is None else self.reserved_bytes.tolist(),
        }


def allocations_of(trace: Trace) -> list[Allocations]:
    """One entry per device, GPUs first."""
    memory = trace.memory
    order = np.argsort(memory.time_ns, kind="stable")
    events = memory[order[filled(memory.bytes, 0)[order] != 0]]
    kinds, numbers = filled(events.device_type, 0), events.device
    places = _places(trace, events)
    found = []
    for kind, number in sorted(set(zip(kinds.tolist(), numbers.tolist(), strict=True)), key=_gpus_first):
        rows = np.flatnonzero((kinds == kind) & (numbers == number))
        found.append(_of_device(_named(kind, number), events[rows], places[rows], trace.source))
    return found


def _gpus_first(key: tuple[int, int]) -> tuple[bool, int, int]:
    kind, number = key
    return kind == 0, kind, number


def _named(kind: int, number: int) -> str:
    name = DEVICE_TYPES.get(kind, f"device type {kind}")
    return name if kind == 0 or number < 0 else f"{name}:{number}"


def _of_device(device: str, events: Memory, places: pl.DataFrame, source: str) -> Allocations:
    # A profiler of 2021 wrote no totals; some write zeros for devices that they do not follow.
    known = _are_totals(events.allocated_bytes)
    if known:
        allocated = events.allocated_bytes
    else:
        allocated = np.cumsum(events.bytes)
        allocated -= min(int(allocated.min()), 0)
    # What a program holds when a capture range begins, nsys lists at its time 0: then the totals are whole.
    before = int((events.time_ns == 0).sum()) if source == "nsys" else 0
    return Allocations(
        device,
        "CUDA allocations" if source == "nsys" else "tensors",
        events.time_ns,
        events.bytes,
        events.address if (events.address != NONE).all() else None,
        allocated,
        events.reserved_bytes if _are_totals(events.reserved_bytes) else None,
        int(allocated[before - 1]) if before else int(allocated[0] - events.bytes[0]),
        known or before > 0,
        places,
    )


def _are_totals(sizes: Int64s) -> bool:
    """Whether every event has a total, and not all are 0."""
    return bool((sizes != NONE).all() and (sizes > 0).any())


def _places(trace: Trace, events: Memory) -> pl.DataFrame:
    """The outermost op, the module and the user's line at each event."""
    if trace.source == "nsys":
        ranges = _range_names(trace, _calling_threads(trace, events.time_ns), events.time_ns)
        nothing = pl.lit(None, pl.String)
        return pl.DataFrame({"op": ranges.series()}).with_columns(module=nothing, line=nothing)
    ops = trace.ops
    inner = Nest(ops.thread, ops.start_ns, ops.end_ns, ops.parent, ops.depth).innermost(events.thread, events.time_ns)
    outer = np.append(outermost(ops.parent), NONE)[inner]
    lines = trace.once(UserFrames).sites(events.thread, events.time_ns).tolist()
    return pl.DataFrame(
        {
            "op": ops.name.at(outer).series(),
            "module": ops.module.at(inner).series(),
            "line": pl.Series(lines, dtype=pl.String),
        }
    )


def _calling_threads(trace: Trace, moments: Int64s) -> Int64s:
    """The thread whose API call was running: nsys records a time for an allocation, but no thread."""
    api = trace.api
    at = np.searchsorted(api.start_ns, moments, side="right") - 1
    is_running = np.append(api.end_ns, NONE)[at] >= moments
    return np.where((at != NONE) & is_running, np.append(api.thread, NONE)[at], NONE)


def _range_names(trace: Trace, threads: Int64s, moments: Int64s) -> Names:
    """The innermost NVTX range around each moment."""
    ranges = trace.ranges
    rows = np.flatnonzero((ranges.thread != NONE) & (ranges.end_ns != NONE) & ~ranges.style.equal("gpu"))
    place = np.full(len(ranges) + 1, NONE, np.int64)
    place[rows] = np.arange(len(rows))
    some = ranges[rows]
    nest = Nest(some.thread, some.start_ns, some.end_ns, place[some.parent], filled(some.depth, 0))
    return some.name.at(nest.innermost(threads, moments))


def memory_curve(allocations: Allocations, rows: slice = slice(None), points: int = CURVE_POINTS) -> MemoryCurve:
    """The curve over these events: each point is the largest value of an equal part of the time."""
    times, allocated = allocations.time_ns[rows], allocations.allocated[rows]
    reserved = allocations.reserved[rows] if allocations.reserved is not None else None
    if len(times) <= points:
        return MemoryCurve(times, allocated, reserved)
    edges = np.linspace(times[0], times[-1], points, endpoint=False)
    first = np.unique(np.searchsorted(times, edges))
    return MemoryCurve(
        times[first],
        np.maximum.reduceat(allocated, first),
        None if reserved is None else np.maximum.reduceat(reserved, first),
    )
