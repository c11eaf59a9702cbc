"""Finds the same collective on all ranks: by group and sequence number, else by group, step and order.

Recordings begin at different steps, so order counts within a step. A send and its recv are matched by both ranks.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from warpline.ranks.timeline import RankTimeline
from warpline.trace.arrays import NONE

SYNCHRONISING = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier")
"""No member leaves one of these before all have arrived. The root of a broadcast and a sender may leave early."""


class Collective(Struct, frozen=True):
    """One collective of the job and the row of each rank that recorded it."""

    group: str
    members: tuple[int, ...]
    """All ranks of its group, also those without a recording."""
    kind: str
    step: int
    order: int
    """Its number among those of its group in the step."""
    message_bytes: int
    """NONE if it was not recorded."""
    rows: dict[int, int]
    """Row of each rank's timeline, by rank."""

    @property
    def synchronises(self) -> bool:
        """Whether all members leave together."""
        return self.kind in SYNCHRONISING

    @property
    def is_whole(self) -> bool:
        """Whether every member recorded it."""
        return len(self.rows) >= len(self.members)


def match(timelines: Sequence[RankTimeline]) -> list[Collective]:
    """The collectives that two or more ranks recorded, in order."""
    found: dict[Hashable, dict[int, int]] = defaultdict(dict)
    for timeline in timelines:
        for row, key in _keys(timeline).items():
            found[key][timeline.rank] = row
    by_rank = {timeline.rank: timeline for timeline in timelines}
    matched = sorted((_collective(rows, by_rank) for rows in found.values() if len(rows) > 1), key=lambda one: one.step)
    seen: Counter[tuple[str, int]] = Counter()
    ordered = []
    for one in matched:
        ordered.append(replace(one, order=seen[one.group, one.step]))
        seen[one.group, one.step] += 1
    return ordered


def _keys(timeline: RankTimeline) -> dict[int, Hashable]:
    """What is the same on all ranks for each collective of one rank."""
    keys: dict[int, Hashable] = {}
    seen: Counter[Hashable] = Counter()
    for row in np.flatnonzero(timeline.is_comm).tolist():
        kind, step = timeline.collective[row], int(timeline.step[row])
        group, number = _group(timeline, row), int(timeline.sequence[row])
        is_pair = kind in {"send", "recv"}
        place: Hashable = (group, step) if number == NONE or is_pair else (group, "sequence", number)
        keys[row] = (place, seen[place])
        seen[place] += 1
    return keys


def _group(timeline: RankTimeline, row: int) -> Hashable:
    kind, group, peer = timeline.collective[row], timeline.group[row], int(timeline.peer[row])
    if kind not in {"send", "recv"}:
        return str(group)
    if peer == NONE:
        pair = [rank for rank in members_of(group) if rank != timeline.rank]
        if len(pair) != 1:
            return str(group)
        peer = pair[0]
    return ("pair", timeline.rank, peer) if kind == "send" else ("pair", peer, timeline.rank)


def members_of(group: str) -> tuple[int, ...]:
    """The ranks of a group; empty if they are not known."""
    return tuple(map(int, group.split(","))) if group and group.replace(",", "").isdecimal() else ()


def _collective(rows: dict[int, int], by_rank: dict[int, RankTimeline]) -> Collective:
    rank, row = next(iter(rows.items()))
    first = by_rank[rank]
    kind, group = str(first.collective[row]), str(first.group[row])
    members = tuple(rows) if kind in {"send", "recv"} else members_of(group) or tuple(rows)
    sizes = [int(by_rank[other].message_bytes[at]) for other, at in rows.items()]
    return Collective(group, members, kind, int(first.step[row]), 0, max(sizes), rows)
