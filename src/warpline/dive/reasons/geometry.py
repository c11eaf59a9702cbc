"""How the blocks cover the SMs: too few of them, a part-filled last wave, or blocks of unequal length."""

from __future__ import annotations

import math

from warpline.dive.gains import (
    MIN_UTILISATION,
    USUAL_PEAK_SHARE,
    cap_of,
    gain_of_more_parallelism,
    in_order,
    with_overhead,
)
from warpline.dive.kernel_metrics import KernelMetrics
from warpline.dive.model import FoundReason
from warpline.dive.reasons.base import Case, Reason
from warpline.estimate import Estimate
from warpline.units import several

MIN_LOSS = 0.1
"""Part of the SMs' time that is lost: what a gain of the least size that counts needs."""
MAX_TOP = 0.6
"""A kernel whose busiest unit is above this has enough blocks for it."""
MAX_ACHIEVED = 0.5
"""Achieved over theoretical occupancy: below, places that blocks hold are mostly empty."""
MIN_LIFE = 2_000.0
"""Cycles that a warp lives on average, about three latencies of DRAM. Below, starting the blocks leaves places empty:
30 % of them where warps live 1,000 cycles (H200)."""
MAX_WAVES = 0.5
"""Half of the blocks that fit at once."""


def wave_loss(metrics: KernelMetrics) -> float | None:
    """The part of the blocks' places that the last wave leaves empty, over all waves."""
    waves = metrics.get("waves")
    return None if not waves else 1 - waves / max(1, math.ceil(waves - 1e-6))


def few_blocks(case: Case) -> FoundReason | None:
    """More blocks: up to a full wave."""
    metrics, blocks, sms = case.metrics, case.metrics.blocks, case.metrics.get("sms")
    waves = metrics.get("waves")
    if blocks is None or sms is None or case.utilisation.top > MAX_TOP:
        return None
    if blocks > (1 - MIN_LOSS) * sms and (waves is None or waves > MAX_WAVES):
        return None
    factor = 1 / max(waves, 1e-6) if waves else sms / blocks
    idle = f", so that {several(sms - blocks, 'SM')} of {sms:.0f} stay idle" if blocks < sms else ""
    filled = "" if waves is None else f"; {100 * min(waves, 1.0):.0f} % of the blocks that fit at once"
    return FoundReason(
        "small_grid",
        f"The grid is too small: {several(blocks, 'block')} for {several(sms, 'SM')}{filled}{idle}",
        gain_of_more_parallelism(metrics, case.utilisation, factor),
        "Launch more blocks: give each less work, split the reduced dimension (split-K, two passes), or batch several "
        "small problems into one launch.",
        (metrics.name("grid"), metrics.name("waves")),
    )


def last_wave(case: Case) -> FoundReason | None:
    """Work dealt out so that all SMs end together, where the number of blocks explains that they do not."""
    metrics, activity, loss = case.metrics, case.metrics.activity, wave_loss(case.metrics)
    waves, blocks, sms = metrics.get("waves"), metrics.blocks, metrics.get("sms")
    if activity is None or loss is None or waves is None or waves <= 1 or not sms:
        return None
    if 1 - activity < MIN_LOSS or loss < MIN_LOSS or 1 - activity < loss / 2:
        return None
    full = math.floor(waves + 1e-6)
    rest = (blocks or 0.0) * (waves - full) / waves
    return FoundReason(
        "tail",
        f"The last wave is almost empty: {waves:.2f} waves, the last one with about {several(rest, 'block')}; SMs are "
        f"active {100 * activity:.0f} % of the longest one's time",
        _even(case, activity),
        "Choose the grid so that it fills whole waves, use smaller blocks, or let as many blocks as fit loop over the "
        "work (a persistent kernel).",
        (metrics.name("waves"), metrics.name("active_avg"), metrics.name("active_max")),
    )


def uneven(case: Case) -> FoundReason | None:
    """Work dealt out so that all SMs end together, where the number of blocks does not explain that they do not."""
    metrics, activity = case.metrics, case.metrics.activity
    blocks, sms = metrics.blocks, metrics.get("sms")
    if activity is not None and 1 - activity < MIN_LOSS:
        return uneven_warps(case)
    if activity is None or not sms or (blocks is not None and blocks < (1 - MIN_LOSS) * sms):
        return None
    loss = wave_loss(metrics) or 0.0
    if (metrics.get("waves") or 0.0) > 1 and 1 - activity >= loss / 2 and loss >= MIN_LOSS:
        return None
    return FoundReason(
        "imbalance",
        f"The SMs do unequal work: on average they are active {100 * activity:.0f} % of the time of the busiest one",
        _even(case, activity),
        "Make the blocks' work equal: cut long rows into chunks, pair long with short ones, order the longest first, "
        "or let blocks take work from a counter.",
        (metrics.name("active_avg"), metrics.name("active_max")),
    )


def _warp_life(metrics: KernelMetrics) -> float | None:
    """Cycles that a warp lives on average: those of all places that are in use, over the warps that used them."""
    places, active, sms = metrics.get("limit_warps"), metrics.get("active_avg"), metrics.get("sms")
    if not places or not active or not sms or not metrics.blocks:
        return None
    return places * (metrics.share("occupancy") or 0.0) * active * sms / metrics.blocks


def uneven_warps(case: Case) -> FoundReason | None:
    """Warps of a block of unequal length: the block keeps its place until the last one ends."""
    metrics = case.metrics
    achieved, possible, waves = metrics.get("occupancy"), metrics.get("occupancy_possible"), metrics.get("waves")
    if not achieved or not possible or waves is None or waves < 1 or case.utilisation.top > MAX_TOP:
        return None
    if achieved > MAX_ACHIEVED * possible or 1 - (metrics.activity or 1.0) >= MIN_LOSS:
        return None
    life = _warp_life(metrics)
    if life is not None and life < MIN_LIFE:
        return None
    return FoundReason(
        "imbalance",
        f"The warps of a block do unequal work: {achieved:.0f} % of an SM's warps are active, where {possible:.0f} % "
        "fit and there are enough blocks",
        gain_of_more_parallelism(metrics, case.utilisation, possible / achieved),
        "Make the warps' work equal, use smaller blocks so that an early end frees its place, or let warps take work "
        "from a counter.",
        (metrics.name("occupancy"), metrics.name("occupancy_possible")),
    )


SHARED_UNITS = ("l2", "dram")
"""Units that all SMs share: the SMs that still work have more of them when others have ended."""


def _even(case: Case, activity: float) -> Estimate:
    """Every SM works as well as it does now, and all end together, up to what the units that they share usually do."""
    cap = cap_of(case.utilisation)
    shared = max((case.utilisation.shares.get(unit, 0.0) for unit in SHARED_UNITS), default=0.0)
    expected = min(with_overhead(case.metrics, 1 / activity), cap, USUAL_PEAK_SHARE / max(shared, MIN_UTILISATION))
    return in_order(1 + 0.5 * (expected - 1), expected, min(cap, 1.1 / activity))


SMALL_GRID = Reason(
    "small_grid",
    "Does every SM get blocks?",
    ("grid", "sms"),
    "fewer blocks than SMs, or under half of the blocks that fit at once, while no unit is over 60 % busy",
    few_blocks,
)
TAIL = Reason(
    "tail",
    "Is the last wave full?",
    ("waves", "active_avg", "active_max"),
    "10 % of the SMs' time lost, and the part-filled last wave explains at least half of what it could cost",
    last_wave,
)
IMBALANCE = Reason(
    "imbalance",
    "Do all SMs work equally long?",
    ("active_avg", "active_max"),
    "10 % of the SMs' time lost, without a part-filled last wave or too few blocks to explain it; or under half of the "
    "warps that fit active, in full waves, with no unit over 60 % busy and warps that live over 2,000 cycles",
    uneven,
)
