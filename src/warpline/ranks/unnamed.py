"""Collectives without recorded arguments: which ranks form a group, told by when they leave.

Files of old versions of torch, and those of nsys, name no group; then the n-th stream with collectives stands for one.
With tensor × data parallelism several groups use such a stream. The members of a group leave each collective together,
so the time between two ends is the same on all of them, whatever their clocks say. Groups in lockstep cannot be told
apart.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from warpline.ranks.match import SYNCHRONISING
from warpline.ranks.timeline import RankOutline
from warpline.trace.arrays import Int64s
from warpline.trace.table import Names, Words

STREAM = "stream:"
TOGETHER_NS, TOGETHER_SHARE = 25_000.0, 1e-4
"""Times between two ends that differ by less are the same: ranks leave up to 24 µs apart (see `clocks`), and clocks
drift by up to this share."""
MIN_INTERVALS = 3
"""Fewer do not tell ranks apart."""


def told_apart(outlines: Sequence[RankOutline]) -> list[RankOutline]:
    """The outlines with a group for each set of ranks that leave the collectives of a stream together."""
    found = list(outlines)
    for stream in sorted({word for one in outlines for word in one.group.words if word.startswith(STREAM)}):
        rows = [np.flatnonzero(one.group.equal(stream)) for one in outlines]
        sets: list[list[int]] = []
        for place, own in enumerate(rows):
            if not len(own):
                continue
            same = next((one for one in sets if _leave_together(outlines, rows, one[0], place)), None)
            if same is None:
                sets.append([place])
            else:
                same.append(place)
        if len(sets) < 2 or any(len(one) < 2 for one in sets):
            continue
        for members in sets:
            name = f"{stream} of {','.join(str(outlines[place].rank) for place in members)}"
            for place in members:
                found[place] = replace(found[place], group=_renamed(found[place].group, rows[place], name))
    return found


def _leave_together(outlines: Sequence[RankOutline], rows: Sequence[Int64s], first: int, second: int) -> bool:
    """Whether two ranks leave the collectives of a stream at the same times, as far as that can be told."""
    a, b = outlines[first], outlines[second]
    if len(rows[first]) != len(rows[second]) or (a.kind.texts[rows[first]] != b.kind.texts[rows[second]]).any():
        return True  # order does not pair them, and nothing else tells
    chosen = np.isin(a.kind.texts[rows[first]].astype(str), SYNCHRONISING)
    between = [np.diff(one.end_ns[own[chosen]]) for one, own in ((a, rows[first]), (b, rows[second]))]
    if len(between[0]) < MIN_INTERVALS:
        return True
    allowed = TOGETHER_NS + TOGETHER_SHARE * np.abs(between[0])
    return bool(np.mean(np.abs(between[0] - between[1]) <= allowed) > 1 / 2)


def _renamed(group: Names, rows: Int64s, name: str) -> Names:
    codes = group.codes.copy()
    codes[rows] = len(group.words)
    return Names(Words([*group.words, name]), codes)
