"""How the blocks cover the SMs: too few of them, a part-filled last wave, or blocks of unequal length."""

from __future__ import annotations

import math

from warpline.dive.gains import ATTAINED, LEAST, cap_of, kept, ordered, parallel
from warpline.dive.measured import Measured
from warpline.dive.model import Found
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


def wave_loss(measured: Measured) -> float | None:
    """The part of the blocks' places that the last wave leaves empty, over all waves."""
    waves = measured.get("waves")
    return None if not waves else 1 - waves / max(1, math.ceil(waves - 1e-6))


def few_blocks(case: Case) -> Found | None:
    """More blocks: up to a full wave."""
    measured, blocks, sms = case.measured, case.measured.blocks, case.measured.get("sms")
    waves = measured.get("waves")
    if blocks is None or sms is None or case.load.top > MAX_TOP:
        return None
    if blocks > (1 - MIN_LOSS) * sms and (waves is None or waves > MAX_WAVES):
        return None
    factor = 1 / max(waves, 1e-6) if waves else sms / blocks
    idle = f", so that {several(sms - blocks, 'SM')} of {sms:.0f} stay idle" if blocks < sms else ""
    filled = "" if waves is None else f"; {100 * min(waves, 1.0):.0f} % of the blocks that fit at once"
    return Found(
        "small_grid",
        f"The grid is too small: {several(blocks, 'block')} for {several(sms, 'SM')}{filled}{idle}",
        parallel(measured, case.load, factor),
        "Launch more blocks: give each less work, split the reduced dimension (split-K, two passes), or batch several "
        "small problems into one launch.",
        (measured.name("grid"), measured.name("waves")),
    )


def last_wave(case: Case) -> Found | None:
    """Work dealt out so that all SMs end together, where the number of blocks explains that they do not."""
    measured, activity, loss = case.measured, case.measured.activity, wave_loss(case.measured)
    waves, blocks, sms = measured.get("waves"), measured.blocks, measured.get("sms")
    if activity is None or loss is None or waves is None or waves <= 1 or not sms:
        return None
    if 1 - activity < MIN_LOSS or loss < MIN_LOSS or 1 - activity < loss / 2:
        return None
    full = math.floor(waves + 1e-6)
    rest = (blocks or 0.0) * (waves - full) / waves
    return Found(
        "tail",
        f"The last wave is almost empty: {waves:.2f} waves, the last one with about {several(rest, 'block')}; SMs are "
        f"active {100 * activity:.0f} % of the longest one's time",
        _even(case, activity),
        "Choose the grid so that it fills whole waves, use smaller blocks, or let as many blocks as fit loop over the "
        "work (a persistent kernel).",
        (measured.name("waves"), measured.name("active_avg"), measured.name("active_max")),
    )


def uneven(case: Case) -> Found | None:
    """Work dealt out so that all SMs end together, where the number of blocks does not explain that they do not."""
    measured, activity = case.measured, case.measured.activity
    blocks, sms = measured.blocks, measured.get("sms")
    if activity is not None and 1 - activity < MIN_LOSS:
        return uneven_warps(case)
    if activity is None or not sms or (blocks is not None and blocks < (1 - MIN_LOSS) * sms):
        return None
    loss = wave_loss(measured) or 0.0
    if (measured.get("waves") or 0.0) > 1 and 1 - activity >= loss / 2 and loss >= MIN_LOSS:
        return None
    return Found(
        "imbalance",
        f"The SMs do unequal work: on average they are active {100 * activity:.0f} % of the time of the busiest one",
        _even(case, activity),
        "Make the blocks' work equal: cut long rows into chunks, pair long with short ones, order the longest first, "
        "or let blocks take work from a counter.",
        (measured.name("active_avg"), measured.name("active_max")),
    )


def _warp_life(measured: Measured) -> float | None:
    """Cycles that a warp lives on average: those of all places that are in use, over the warps that used them."""
    places, active, sms = measured.get("limit_warps"), measured.get("active_avg"), measured.get("sms")
    if not places or not active or not sms or not measured.blocks:
        return None
    return places * (measured.share("occupancy") or 0.0) * active * sms / measured.blocks


def uneven_warps(case: Case) -> Found | None:
    """Warps of a block of unequal length: the block keeps its place until the last one ends."""
    measured = case.measured
    achieved, possible, waves = measured.get("occupancy"), measured.get("occupancy_possible"), measured.get("waves")
    if not achieved or not possible or waves is None or waves < 1 or case.load.top > MAX_TOP:
        return None
    if achieved > MAX_ACHIEVED * possible or 1 - (measured.activity or 1.0) >= MIN_LOSS:
        return None
    life = _warp_life(measured)
    if life is not None and life < MIN_LIFE:
        return None
    return Found(
        "imbalance",
        f"The warps of a block do unequal work: {achieved:.0f} % of an SM's warps are active, where {possible:.0f} % "
        "fit and there are enough blocks",
        parallel(measured, case.load, possible / achieved),
        "Make the warps' work equal, use smaller blocks so that an early end frees its place, or let warps take work "
        "from a counter.",
        (measured.name("occupancy"), measured.name("occupancy_possible")),
    )


SHARED_UNITS = ("l2", "dram")
"""Units that all SMs share: the SMs that still work have more of them when others have ended."""


def _even(case: Case, activity: float) -> Estimate:
    """Every SM works as well as it does now, and all end together, up to what the units that they share usually do."""
    cap = cap_of(case.load)
    shared = max((case.load.shares.get(unit, 0.0) for unit in SHARED_UNITS), default=0.0)
    expected = min(kept(case.measured, 1 / activity), cap, ATTAINED / max(shared, LEAST))
    return ordered(1 + 0.5 * (expected - 1), expected, min(cap, 1.1 / activity))


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
