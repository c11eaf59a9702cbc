"""Memory in use over time, as few points that keep every peak."""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct

from warpline.analyses.memory.allocations import Allocations
from warpline.trace.arrays import Int64s

POINTS = 1_000


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


def memory_curve(allocations: Allocations, rows: slice = slice(None), points: int = POINTS) -> MemoryCurve:
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
