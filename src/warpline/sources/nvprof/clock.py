"""Aligns the device's clock with the host's: nvprof records each with its own, and some files have them hours apart.

An operation begins after its launch call begins, and ends before a call that waited for its stream returns. Each such
pair bounds the difference of the clocks from one side; if zero lies within the bounds, nothing is moved.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from warpline.sources.health import HealthEntry

NANOSECONDS = 1e9


@dataclass(frozen=True, slots=True)
class ClockShift:
    """By how much device times are ahead of host times."""

    shift_ns: int
    doubt_ns: int | None
    """How far the true difference may be from it; None if no call waited for an operation."""
    agrees: bool
    """Whether one difference satisfies all pairs."""


def clock_shift(work: pl.DataFrame, calls: pl.DataFrame, waits: pl.DataFrame) -> ClockShift | None:
    """The shift to subtract from device times; None if the clocks agree or nothing links them.

    `work` and `calls` are joined by correlation; `waits` are returned waits for one stream.
    """
    begun = calls.group_by("correlation").agg(pl.col("start_ns").min().alias("launched_ns"))
    pairs = work.join(begun, on="correlation").sort("launched_ns")
    if not len(pairs):
        return None
    most = int((pairs["start_ns"] - pairs["launched_ns"]).min())  # type: ignore[arg-type]
    least = _least(pairs, waits)
    if most >= 0 and (least is None or least <= 0):
        return None
    if least is None:
        # Without a wait, a difference above zero may be the queue's.
        return ClockShift(most, None, True) if most < 0 else None
    if least > most:
        return ClockShift(most, least - most, False)
    return ClockShift((least + most) // 2, (most - least + 1) // 2, True)


def _least(pairs: pl.DataFrame, waits: pl.DataFrame) -> int | None:
    """The largest lead of an operation's end over the return of a later wait for its stream."""
    bounds = []
    for (stream,), mine in pairs.group_by("stream"):
        waited = waits.filter(pl.col("stream") == stream)
        launched, ends = mine.sort("launched_ns").select("launched_ns", "end_ns").get_columns()
        last = np.maximum.accumulate(ends.to_numpy())
        before = np.searchsorted(launched.to_numpy(), waited["start_ns"].to_numpy())
        some = before > 0
        bounds += (last[before[some] - 1] - waited["end_ns"].to_numpy()[some]).tolist()
    return max(bounds, default=None)


def shift_health(shift: ClockShift) -> HealthEntry:
    """The health entry for a clock that was moved."""
    doubt = "" if shift.doubt_ns is None or not shift.agrees else f" (within {shift.doubt_ns / 1e3:,.0f} µs)"
    rest = "" if shift.agrees else "; no single difference fits all launches and waits, so gaps are doubtful"
    return HealthEntry(
        "clock-shift",
        "warning",
        f"Device times are {abs(shift.shift_ns) / NANOSECONDS:,.3f} s {'ahead of' if shift.shift_ns > 0 else 'behind'} "
        f"host times; they were moved so that operations begin after their launch and end before the call that waits "
        f"for them returns{doubt}{rest}.",
    )
