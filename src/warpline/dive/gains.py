"""The gain of fixing a flaw: never above the time that the useful work needs, and a range as wide as the doubt."""

from __future__ import annotations

from warpline.dive.kernel_metrics import KernelMetrics
from warpline.dive.utilisation import Utilisation
from warpline.estimate import Estimate
from warpline.replay.costs.device import SMALLEST_KERNEL

USUAL_PEAK_SHARE = 0.8
"""The part of its peak that the busiest unit of a kernel without a flaw usually reaches."""
MIN_FLAW_GAIN = 1.1
"""A flaw that gains less than this is not the reason: kernels' times vary by some percent from run to run."""
MIN_EXPLAINING_GAIN = 1.25
"""A kernel whose units are under 60 % busy waits for two fifths of its time at least. A flaw that takes less than half
of that, a fifth, does not explain it."""
MIN_BUSY_SHARE = 0.6
"""Below, the units wait for the warps rather than the warps for a unit: two thirds of what good kernels reach, which is
88 % of an H200's DRAM peak for a copy and 92 % of its tensor peak for a GEMM."""
FIX_COST = 1 / 3
"""The pessimistic case keeps this part of the gain, as a power: a fix brings work of its own (24 kernels, H200: the
worst tenth kept 0.3 to 0.4)."""
POOR_PEAK_SHARE = USUAL_PEAK_SHARE / 2
"""The part of its peak that the busiest unit reaches at least when only waiting is left: 42 to 54 % of an H200's DRAM
peak for kernels of four bytes a thread."""
MIN_UTILISATION = 1e-4
"""Utilisations below this count as equal: a gain of ten thousand is no number to promise."""
SHORT_IN_KERNELS = 6
"""A kernel shorter than this many of the smallest ones gains more from its neighbours than from within."""
NO_GAIN = Estimate(1.0, 1.0, 1.0)


def cap_of(utilisation: Utilisation) -> float:
    """The largest gain where every unit does useful work."""
    return 1 / max(utilisation.top, MIN_UTILISATION)


def headroom(utilisation: Utilisation, *, active: float = 1.0) -> Estimate:
    """The gain up to the peak of the busiest unit; nobody knows how much of it can be had, so none is promised.

    Half of the way to the usual peak is expected, as a power. `active` is the part of the time that counts.
    """
    cap = active * cap_of(utilisation)
    return in_order(1.0, max(1.0, USUAL_PEAK_SHARE * cap) ** 0.5, cap)


def gain_of_less_work(
    metrics: KernelMetrics,
    utilisation: Utilisation,
    left: dict[str, float],
    pace: float | None = None,
    *,
    adds: bool = True,
) -> Estimate:
    """The gain if only these parts of the units' work are left.

    `pace` is the share of what sets the pace where that is none of the units: one slice of the cache, say. `adds` is
    false for a fix that only takes work away, as padding does: then the worst case is that the kernel waits.

    The best case is the roofline: the unit that is then busiest works at its peak. The expected case lies between that
    unit working as well as the busiest one does now, and working as well as it usually can. Launch and drain stay.
    Where no unit is busy the time goes to waiting, which may stay: nothing is promised, and no more is expected than
    the busiest unit has less to do.
    """
    before, after = utilisation.top if pace is None else pace, utilisation.after(left)
    if before <= MIN_UTILISATION or after >= before:
        return NO_GAIN
    cap = 1 / max(after, MIN_UTILISATION)
    same = before / max(after, MIN_UTILISATION)
    if before < MIN_BUSY_SHARE and pace is None:
        return in_order(1.0, with_overhead(metrics, same), cap)
    usual = max(same, USUAL_PEAK_SHARE * cap)
    expected = with_overhead(metrics, (same * usual) ** 0.5)
    low = with_overhead(metrics, same) ** FIX_COST
    return in_order(low if adds else max(low, with_overhead(metrics, POOR_PEAK_SHARE * cap)), expected, cap)


def with_overhead(metrics: KernelMetrics, gain: float) -> float:
    """A gain of all but the part of the time in which no SM is active."""
    still = metrics.overhead
    return 1 / (still + (1 - still) / max(gain, 1.0))


def gain_of_more_parallelism(metrics: KernelMetrics, utilisation: Utilisation, factor: float) -> Estimate:
    """The gain of `factor` times as much parallel work: in proportion, up to where some unit is full."""
    cap = cap_of(utilisation)
    most = min(cap, max(factor, 1.0))
    expected = with_overhead(metrics, min(most, max(1.0, USUAL_PEAK_SHARE * cap)))
    return in_order(expected**0.5, expected, most)


def not_below_a_launch(gain: Estimate, duration_ns: float | None) -> Estimate:
    """The same, where the kernel is no shorter than the smallest one that a device runs.

    In a short kernel most of the time may be start and latency, so that nothing is promised.
    """
    if not duration_ns:
        return gain
    least, short = SMALLEST_KERNEL, is_short(duration_ns)
    expected = min(gain.expected, duration_ns / least.expected)
    return in_order(
        1.0 if short else min(gain.low, duration_ns / least.high),
        expected**0.5 if short else expected,
        min(gain.high, duration_ns / least.low),
    )


def is_short(duration_ns: float | None) -> bool:
    """Whether launching the kernel is a large part of its time."""
    return duration_ns is not None and duration_ns < SHORT_IN_KERNELS * SMALLEST_KERNEL.expected


def in_order(low: float, expected: float, high: float) -> Estimate:
    """An estimate whose parts are in order, none of them below 1 and none above the cap."""
    high = max(high, 1.0)
    expected = min(max(expected, 1.0), high)
    return Estimate(min(max(low, 1.0), expected), expected, high)
