"""The gain of curing a flaw: never above the time that the useful work needs, and a range as wide as the doubt."""

from __future__ import annotations

from warpline.dive.measured import Measured
from warpline.dive.utilisation import Load
from warpline.estimate import Estimate
from warpline.replay.costs.device import SMALLEST_KERNEL

ATTAINED = 0.8
"""The part of its peak that the busiest unit of a kernel without a flaw usually reaches."""
WORTH = 1.1
"""A flaw that gains less than this is not the reason: kernels' times vary by some percent from run to run."""
MINOR = 1.25
"""A kernel whose units are under 60 % busy waits for two fifths of its time at least. A flaw that takes less than half
of that, a fifth, does not explain it."""
WAITING = 0.6
"""Below, the units wait for the warps rather than the warps for a unit: two thirds of what good kernels reach, which is
88 % of an H200's DRAM peak for a copy and 92 % of its tensor peak for a GEMM."""
CURE_COST = 1 / 3
"""The pessimistic case keeps this part of the gain, as a power: a cure brings work of its own (24 kernels, H200: the
worst tenth kept 0.3 to 0.4)."""
POOR = ATTAINED / 2
"""The part of its peak that the busiest unit reaches at least when only waiting is left: 42 to 54 % of an H200's DRAM
peak for kernels of four bytes a thread."""
LEAST = 1e-4
"""Utilisations below this are not told apart: a gain of ten thousand is no number to promise."""
SHORT_IN_KERNELS = 6
"""A kernel shorter than this many of the smallest ones gains more from its neighbours than from within."""
NO_GAIN = Estimate(1.0, 1.0, 1.0)


def cap_of(load: Load) -> float:
    """The largest gain where every unit does useful work."""
    return 1 / max(load.top, LEAST)


def headroom(load: Load, *, active: float = 1.0) -> Estimate:
    """The gain up to the peak of the busiest unit; nobody knows how much of it can be had, so none is promised.

    Half of the way to the usual peak is expected, as a power. `active` is the part of the time that counts.
    """
    cap = active * cap_of(load)
    return ordered(1.0, max(1.0, ATTAINED * cap) ** 0.5, cap)


def freed(
    measured: Measured, load: Load, left: dict[str, float], pace: float | None = None, *, adds: bool = True
) -> Estimate:
    """The gain if only these parts of the units' work are left.

    `pace` is the share of what sets the pace where that is no unit of the load: one slice of the cache, say. `adds` is
    false for a cure that only takes work away, as padding does: then the worst case is that the kernel waits.

    The best case is the roofline: the unit that is then busiest works at its peak. The expected case lies between that
    unit working as well as the busiest one does now, and working as well as it usually can. Launch and drain stay.
    Where no unit is busy the time goes to waiting, which may stay: nothing is promised, and no more is expected than
    the busiest unit has less to do.
    """
    before, after = load.top if pace is None else pace, load.after(left)
    if before <= LEAST or after >= before:
        return NO_GAIN
    cap = 1 / max(after, LEAST)
    same = before / max(after, LEAST)
    if before < WAITING and pace is None:
        return ordered(1.0, kept(measured, same), cap)
    usual = max(same, ATTAINED * cap)
    expected = kept(measured, (same * usual) ** 0.5)
    low = kept(measured, same) ** CURE_COST
    return ordered(low if adds else max(low, kept(measured, POOR * cap)), expected, cap)


def kept(measured: Measured, gain: float) -> float:
    """A gain of all but the part of the time in which no SM is active."""
    still = measured.overhead
    return 1 / (still + (1 - still) / max(gain, 1.0))


def parallel(measured: Measured, load: Load, factor: float) -> Estimate:
    """The gain of `factor` times as much parallel work: in proportion, up to where some unit is full."""
    cap = cap_of(load)
    most = min(cap, max(factor, 1.0))
    expected = kept(measured, min(most, max(1.0, ATTAINED * cap)))
    return ordered(expected**0.5, expected, most)


def not_below_a_launch(gain: Estimate, duration_ns: float | None) -> Estimate:
    """The same, where the kernel is no shorter than the smallest one that a device runs.

    In a short kernel most of the time may be start and latency, so that nothing is promised.
    """
    if not duration_ns:
        return gain
    least, short = SMALLEST_KERNEL, is_short(duration_ns)
    expected = min(gain.expected, duration_ns / least.expected)
    return ordered(
        1.0 if short else min(gain.low, duration_ns / least.high),
        expected**0.5 if short else expected,
        min(gain.high, duration_ns / least.low),
    )


def is_short(duration_ns: float | None) -> bool:
    """Whether launching the kernel is a large part of its time."""
    return duration_ns is not None and duration_ns < SHORT_IN_KERNELS * SMALLEST_KERNEL.expected


def ordered(low: float, expected: float, high: float) -> Estimate:
    """An estimate whose parts are in order, none of them below 1 and none above the cap."""
    high = max(high, 1.0)
    expected = min(max(expected, 1.0), high)
    return Estimate(min(max(low, 1.0), expected), expected, high)
