"""Which allocations are alive at a moment, and whose they are."""

from __future__ import annotations

import numpy as np
import polars as pl
from msgspec import Struct

from warpline.analyses.memory.allocations import Allocations
from warpline.trace.arrays import Bools, Int64s


class Holder(Struct, frozen=True):
    """An op, module or line, and the memory that it allocated."""

    name: str | None
    """None for what was allocated outside of any."""
    peak_bytes: int | None
    """Alive at the peak; None where the trace has no addresses."""
    peak_count: int | None
    allocated_bytes: int
    """Allocated in all, whether freed or not."""
    allocated_count: int


class Grower(Struct, frozen=True):
    """An op and line that hold more memory in late steps than in early ones."""

    op: str | None
    line: str | None
    per_step_bytes: float
    bytes: int
    """Held in the last step, where the step holds least."""
    count: int
    """Allocations that hold it."""


def freed_at(addresses: Int64s) -> Int64s:
    """For each event, the event that ends it: the next one at its address; the number of events if there is none."""
    count = len(addresses)
    order = np.lexsort((np.arange(count), addresses))
    ends = np.full(count, count, np.int64)
    same = addresses[order][1:] == addresses[order][:-1]
    ends[order[:-1][same]] = order[1:][same]
    return ends


def alive_after(allocations: Allocations, ends: Int64s, event: int) -> Bools:
    """Which events allocated something that is still in use after this event."""
    positions = np.arange(len(allocations))
    return (allocations.bytes > 0) & (positions <= event) & (ends > event)


def holders(allocations: Allocations, alive: Bools | None, place: str) -> tuple[Holder, ...]:
    """Who allocated, by `place` (op, module or line): most memory at the peak first."""
    if alive is None:
        none_alive = np.zeros(len(allocations), bool)
        found = holders(allocations, none_alive, place)
        return tuple(Holder(one.name, None, None, one.allocated_bytes, one.allocated_count) for one in found)
    table = pl.DataFrame({"name": allocations.places[place], "bytes": allocations.bytes, "alive": alive})
    grouped = (
        table.filter(pl.col("bytes") > 0)
        .group_by("name")
        .agg(
            peak_bytes=pl.col("bytes").filter("alive").sum(),
            peak_count=pl.col("alive").sum(),
            allocated_bytes=pl.col("bytes").sum(),
            allocated_count=pl.len(),
        )
    )
    ordered = grouped.sort("peak_bytes", "allocated_bytes", "name", descending=[True, True, False], nulls_last=True)
    return tuple(Holder(*row) for row in ordered.iter_rows())


def growers(allocations: Allocations, ends: Int64s, early: int, late: int, steps: int) -> tuple[Grower, ...]:
    """Who holds more memory after the event `late` than after `early`, so many steps before; largest growth first."""
    before, after = (alive_after(allocations, ends, event) for event in (early, late))
    table = allocations.places.select("op", "line").with_columns(
        change=np.where(after, allocations.bytes, 0) - np.where(before, allocations.bytes, 0),
        late_bytes=np.where(after, allocations.bytes, 0),
        count=after,
    )
    grouped = table.filter((pl.col("change") != 0) | pl.col("count")).group_by("op", "line").agg(pl.all().sum())
    grown = grouped.filter(pl.col("change") > 0)
    ordered = grown.sort("change", "op", "line", descending=[True, False, False], nulls_last=True)
    return tuple(Grower(op, line, change / steps, size, count) for op, line, change, size, count in ordered.iter_rows())
