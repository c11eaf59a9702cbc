"""Aligns the device's clock with the host's: nvprof records each with its own, and some files have them hours apart.

An operation begins after its launch call begins, and ends before a call that waited for its stream returns. Each such
pair bounds the difference of the clocks from one side. If zero satisfies all of them nothing is moved; else one
difference is taken, or, where the clocks drift apart, a line through the middle between the bounds.
"""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import polars as pl
from msgspec import Struct

from warpline.sources.health import HealthEntry

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]

NANOSECONDS = 1e9
PARTS = 16
"""Parts of the recording whose bounds the line of a drifting clock is fitted to."""
LEAST_PARTS = 3


class ClockShift(Struct, frozen=True):
    """By how much device times are ahead of host times."""

    shift_ns: int
    """At the first operation."""
    from_ns: int
    """The first operation's start, on the device's clock."""
    drift: float
    """Nanoseconds gained per nanosecond afterwards."""
    doubt_ns: int | None
    """How far the true difference may be from it; None if no call waited for an operation."""
    agrees: bool
    """Whether it satisfies all pairs."""

    def on_host_clock(self, column: str) -> pl.Expr:
        """A column of device times as host times."""
        drifted = ((pl.col(column) - self.from_ns) * self.drift).round().cast(pl.Int64)
        return pl.col(column) - self.shift_ns - drifted


class _Bounds(Struct, frozen=True):
    """Bounds of the difference, each at a device time."""

    times: Int64s
    differences: Int64s


def clock_shift(work: pl.DataFrame, calls: pl.DataFrame, waits: pl.DataFrame) -> ClockShift | None:
    """How to move device times; None if the clocks agree or nothing links them.

    `work` and `calls` are joined by correlation; `waits` are waits for one stream, from their call to its return.
    """
    begun = calls.group_by("correlation").agg(pl.col("start_ns").min().alias("launched_ns"))
    pairs = work.join(begun, on="correlation", maintain_order="left").sort("launched_ns")
    if not len(pairs):
        return None
    starts, launched = pairs["start_ns"].to_numpy(), pairs["launched_ns"].to_numpy()
    above, below = _Bounds(starts, starts - launched), _below(pairs, waits)
    most, begin = int(above.differences.min()), int(starts.min())
    if not len(below.times):
        # Without a wait, a difference above zero may be the queue's.
        return ClockShift(most, begin, 0.0, None, True) if most < 0 else None
    least = int(below.differences.max())
    if least <= 0 <= most:
        return None
    if least <= most:
        return ClockShift((least + most) // 2, begin, 0.0, (most - least + 1) // 2, True)
    return _drifting(above, below, begin) or ClockShift(most, begin, 0.0, least - most, False)


def _below(pairs: pl.DataFrame, waits: pl.DataFrame) -> _Bounds:
    """At each return of a wait, the lead of the last operation that was launched into its stream before."""
    times, differences = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for (stream,), mine in pairs.group_by("stream"):
        waited = waits.filter(pl.col("stream") == stream)
        last = np.maximum.accumulate(mine["end_ns"].to_numpy())
        before = np.searchsorted(mine["launched_ns"].to_numpy(), waited["start_ns"].to_numpy())
        some = before > 0
        times.append(last[before[some] - 1])
        differences.append(times[-1] - waited["end_ns"].to_numpy()[some])
    return _Bounds(np.concatenate(times), np.concatenate(differences))


def _drifting(above: _Bounds, below: _Bounds, begin: int) -> ClockShift | None:
    """The line through the middle of the bounds in each part of the recording; None with too few parts."""
    end = int(max(above.times.max(), below.times.max()))
    edges = np.linspace(begin, end + 1, PARTS + 1)
    middles, widths, when = [], [], []
    for first, beyond in itertools.pairwise(edges.tolist()):
        high = above.differences[(above.times >= first) & (above.times < beyond)]
        low = below.differences[(below.times >= first) & (below.times < beyond)]
        if len(high) and len(low):
            middles.append((int(high.min()) + int(low.max())) / 2)
            widths.append(int(high.min()) - int(low.max()))
            when.append((first + beyond) / 2 - begin)
    if len(when) < LEAST_PARTS:
        return None
    zero = middles[0]
    drift, offset = np.polyfit(np.array(when), np.array(middles) - zero, 1)
    shift = round(zero + offset)

    def left(bounds: _Bounds) -> Floats:
        result: Floats = bounds.differences - shift - drift * (bounds.times - begin)
        return result

    doubt = max(int(np.median(widths)) // 2, 0)
    fits = bool(left(above).min() >= -doubt and left(below).max() <= doubt)
    return ClockShift(shift, begin, float(drift), doubt, fits)


def shift_health(shift: ClockShift) -> HealthEntry:
    """The health entry for a clock that was moved."""
    doubt = "" if shift.doubt_ns is None or not shift.agrees else f" (within {shift.doubt_ns / 1e3:,.0f} µs)"
    drift = f" and drift by {abs(shift.drift) * 1e6:.1f} µs a second" if shift.drift else ""
    rest = "" if shift.agrees else "; not all launches and waits agree, so gaps are doubtful"
    return HealthEntry(
        "clock-shift",
        "warning",
        f"Device times are {abs(shift.shift_ns) / NANOSECONDS:,.3f} s {'ahead of' if shift.shift_ns > 0 else 'behind'} "
        f"host times{drift}; they were moved so that operations begin after their launch and end before the call that "
        f"waits for them returns{doubt}{rest}.",
    )
