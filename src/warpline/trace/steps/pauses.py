"""Pauses of the program between launches, by repeat (rows) and position within the repeat (columns)."""

from __future__ import annotations

from math import lgamma, log

import numpy as np
from msgspec import Struct

from warpline.trace.arrays import Int64s

LEAST_PAUSES = 3
CLEARLY_LONGER, FAR_LONGER = 1.25, 1.5
"""A pause between steps is this many times longer than usual."""
LEAST_NS = 2_000
"""Minimum extra length of such a pause."""
PLACES_TRIED = 8
BY_CHANCE = 0.01
"""How often at most pauses may seem regular that are not."""
PAUSES_TRIED = 128
LONGEST_TRIED = 3
"""One of so many longest pauses is between steps; the others may be hiccups."""


class Regular(Struct, frozen=True):
    """Long pauses before every so-many-th repeat."""

    first: int
    """The first of these repeats."""
    every: int
    place: int
    """Where in the repeat."""


def longest_place(pauses: Int64s) -> int:
    """Where the program usually pauses longest; 0, the begin, unless it is clear."""
    usual = np.median(pauses[1:], axis=0)
    return int(usual.argmax()) if usual.max() > FAR_LONGER * usual[0] + LEAST_NS else 0


def regular_pauses(pauses: Int64s) -> Regular | None:
    """The place where the longest pauses come before every so-many-th repeat, if there is one."""
    if len(pauses) < 2 * LEAST_PAUSES:
        return None
    usual = np.median(pauses, axis=0)
    excess = np.clip(pauses - usual, 0, None).sum(axis=0)
    for place in np.argsort(-excess, kind="stable")[:PLACES_TRIED]:
        least = max(CLEARLY_LONGER * usual[place], usual[place] + LEAST_NS)
        found = _evenly_spaced(pauses[:, place], least)
        if found is not None:
            return Regular(*found, int(place))
    place = int(excess.argmax())
    found = _hardly_by_chance(pauses[:, place], usual[place] + LEAST_NS)
    return None if found is None else Regular(*found, place)


def _evenly_spaced(pauses: Int64s, least: float) -> tuple[int, int] | None:
    """First and distance of the longest pauses, if they are equally far apart from begin to end; of several choices the
    one that is set off most. Four of them prove it; three only if the next one is far shorter.

    The pause before the first repeat may be missing: nothing was recorded before.
    """
    count = len(pauses)
    order = np.argsort(-pauses, kind="stable")
    length = pauses[order].astype(np.float64)
    best: tuple[float, int, int] | None = None
    for many in range(LEAST_PAUSES, min(count // 2, PAUSES_TRIED) + 1):
        drop = length[many - 1] / max(length[many], 1.0)
        if length[many - 1] < least or (many == LEAST_PAUSES and drop < FAR_LONGER):
            continue
        turns = np.sort(order[:many])
        every = int(turns[1] - turns[0])
        even = (np.diff(turns) == every).all() and turns[0] <= every <= count - turns[-1]
        if even and (best is None or drop > best[0]):
            best = drop, int(turns[0]) % every, every
    return None if best is None else best[1:]


def _hardly_by_chance(pauses: Int64s, least: float) -> tuple[int, int] | None:
    """First and distance of pauses that are equally far apart and, but for a few others, the longest: so few that it
    would hardly come by chance, whatever distance and first one are tried."""
    count = len(pauses)
    # The pause before the first repeat may be missing: it is not looked at.
    order = np.argsort(-pauses[1:], kind="stable") + 1
    rank = np.zeros(count, np.int64)
    rank[order] = np.arange(1, count)
    distances = range(2, count // LEAST_PAUSES + 1)
    tried = log(sum(distances))
    best: tuple[float, int, int] | None = None
    for every in distances:
        for first in {int(turn) % every for turn in order[:LONGEST_TRIED]}:
            turns = np.arange(first or every, count, every)
            if len(turns) < LEAST_PAUSES or pauses[turns].min() < least:
                continue
            chance = tried + _log_choices(int(rank[turns].max()), len(turns)) - _log_choices(count - 1, len(turns))
            if chance < log(BY_CHANCE) and (best is None or chance < best[0]):
                best = chance, first, every
    return None if best is None else best[1:]


def _log_choices(count: int, chosen: int) -> float:
    """Logarithm of the number of ways to choose so many of so many."""
    return lgamma(count + 1) - lgamma(chosen + 1) - lgamma(count - chosen + 1)
