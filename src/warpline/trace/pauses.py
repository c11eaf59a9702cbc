"""Pauses of the program between one request and the next, by repeat (rows) and place within the repeat (columns)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]

LEAST_PAUSES = 3
CLEARLY_LONGER, FAR_LONGER = 1.25, 1.5
"""How many times as long as usual a pause between steps is."""
LEAST_NS = 2_000
"""And by how much."""
PLACES_TRIED = 8
PAUSES_TRIED = 128


@dataclass(frozen=True, slots=True)
class Regular:
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
    return None


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
