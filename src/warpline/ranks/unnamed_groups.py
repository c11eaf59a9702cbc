"""Collectives without recorded arguments: which ranks form a group, by when they leave.

Files of old versions of torch, and those of nsys, name no group; then the n-th stream with collectives stands for one.
With tensor × data parallelism several groups use such a stream. The members of a group leave each collective together,
so the time between two ends is the same on all of them, whatever their clocks say. Groups in lockstep cannot be
separated. Where only some ranks name groups, the others belong to those that list them and that they leave together
with.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from warpline.ranks.match import PAIR, SYNCHRONISING, members_of
from warpline.ranks.timeline import RankOutline
from warpline.trace.arrays import NONE, Bools, Floats, Int64s, grouped
from warpline.trace.table import Names, Words

STREAM = "stream:"
TOGETHER_NS, TOGETHER_SHARE = 25_000.0, 1e-4
"""Times between two ends that differ by less are the same: ranks leave up to 24 µs apart (see `clocks`), and clocks
drift by up to this share."""
MIN_INTERVALS = 3
"""Fewer do not separate ranks."""


def separated_groups(outlines: Sequence[RankOutline]) -> list[RankOutline]:
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
    chosen = a.kind[rows[first]].equal(*SYNCHRONISING)
    ends = a.end_ns[rows[first][chosen]], b.end_ns[rows[second][chosen]]
    return len(ends[0]) <= MIN_INTERVALS or _are_the_same(*ends)


def _are_the_same(first_ns: Floats, second_ns: Floats) -> bool:
    """Whether ends by two clocks are of the same collectives: most times between them are the same."""
    between, other = np.diff(first_ns), np.diff(second_ns)
    return bool(np.mean(np.abs(between - other) <= TOGETHER_NS + TOGETHER_SHARE * np.abs(between)) > 1 / 2)


def _renamed(group: Names, rows: Int64s, name: str) -> Names:
    codes = group.codes.copy()
    codes[rows] = len(group.words)
    return Names(Words([*group.words, name]), codes)


class _Recorded(Struct, frozen=True):
    """A group that a rank recorded: its ranks, and the rows of the rank that are its collectives."""

    name: str
    members: tuple[int, ...]
    by: RankOutline
    rows: Int64s


def named_by_others(outlines: Sequence[RankOutline]) -> list[RankOutline]:
    """The outlines with the groups of ranks that name none, where other members of these groups do."""
    recorded: dict[str, _Recorded] = {}
    for one in outlines:
        for code, rows in grouped(np.arange(len(one.step)), one.group.codes):
            name = one.group.words[code] if code >= 0 else ""
            if members_of(name) and name not in recorded:
                recorded[name] = _Recorded(name, members_of(name), one, rows)
    return [_named(one, outlines, recorded) if recorded else one for one in outlines]


def is_unnamed(outline: RankOutline) -> Bools:
    """Which collectives of a rank have no recorded group."""
    return outline.group.where(lambda name: name.startswith(STREAM))


def _named(one: RankOutline, outlines: Sequence[RankOutline], recorded: Mapping[str, _Recorded]) -> RankOutline:
    """The outline with names for its collectives: a rank with the same program says which of them are of one group,
    and that group is the only one of as many ranks that lists this rank and leaves with it."""
    unnamed = is_unnamed(one)
    alike = [other for other in outlines if unnamed.any() and np.array_equal(other.step, one.step)]
    fellow = max(alike, key=lambda other: _likeness(one, other, unnamed), default=one)
    rows = np.flatnonzero(unnamed & ~is_unnamed(fellow))
    is_pair = fellow.kind[rows].equal(*PAIR)
    if is_pair.any():  # their other ranks stay unknown
        one = replace(one, kind=_with_kinds(one.kind, rows[is_pair], fellow.kind[rows[is_pair]]))
        rows = rows[~is_pair]
    for code, own in grouped(rows, fellow.group.codes[rows]):
        size = len(members_of(fellow.group.words[code])) if code >= 0 else 0
        fitting = [
            group
            for group in recorded.values()
            if one.rank in group.members and len(group.members) == size and _leaves_with(one, own, group)
        ]
        if len(fitting) == 1:
            (group,) = fitting
            kinds = _with_kinds(one.kind, own, group.by.kind[group.rows])
            one = replace(one, group=_renamed(one.group, own, group.name), kind=kinds)
    return one


def _with_kinds(kinds: Names, rows: Int64s, others: Names) -> Names:
    """The kinds with other ones in some rows."""
    joined = Names.joined([kinds, others])
    codes = joined.codes[: len(kinds)].copy()
    codes[rows] = joined.codes[len(kinds) :]
    return Names(Words(joined.words), codes)


def _likeness(one: RankOutline, other: RankOutline, unnamed: Bools) -> tuple[int, int]:
    """How many of the collectives that one rank does not name another one does; and how many are of the same kind."""
    return int((~is_unnamed(other) & unnamed).sum()), int((one.kind.texts == other.kind.texts).sum())


def _leaves_with(one: RankOutline, rows: Int64s, group: _Recorded) -> bool:
    """Whether these collectives of a rank end as those of a group do; of a few, whether they are of the same kinds."""
    if len(rows) != len(group.rows) or (one.step[rows] != group.by.step[group.rows]).any():
        return False
    kinds = group.by.kind[group.rows]
    chosen = kinds.equal(*SYNCHRONISING)
    if chosen.sum() <= MIN_INTERVALS:
        return bool((one.kind.texts[rows] == kinds.texts).all())
    return _are_the_same(group.by.end_ns[group.rows[chosen]], one.end_ns[rows[chosen]])


def unrelated(outlines: Sequence[RankOutline]) -> list[int]:
    """The ranks to leave out where some name groups, and others do not that these groups list, or that send to and
    receive from unknown ranks: the fewer ones."""
    recorders: dict[str, set[int]] = defaultdict(set)
    """The ranks that recorded each group whose members are known."""
    for one in outlines:
        for group in one.group.present():
            if members_of(group):
                recorders[group].add(one.rank)
    missed_by = {one.rank: _missed_by(one, recorders) for one in outlines}
    nameless = {rank for rank, naming in missed_by.items() if naming}
    naming = set[int]().union(*missed_by.values()) - nameless
    return sorted(nameless if len(nameless) <= len(naming) else naming)


def _missed_by(one: RankOutline, recorders: Mapping[str, set[int]]) -> set[int]:
    """The ranks whose groups may be those of the collectives that this rank does not name."""
    unnamed = is_unnamed(one)
    if not unnamed.any():
        return set()
    if (unnamed & one.kind.equal(*PAIR) & (one.peer == NONE)).any():
        return set[int]().union(*recorders.values())
    listing = (ranks for group, ranks in recorders.items() if one.rank in members_of(group) and one.rank not in ranks)
    return set[int]().union(*listing)
