"""Finds the same collective on all ranks: by group and sequence number, else by group, step and order.

Recordings begin at different steps, so order counts within a step. A send and its recv are matched by both ranks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import overload

import numpy as np
from msgspec import Struct

from warpline.ranks.timeline import RankOutline
from warpline.trace.arrays import NONE, Bools, Int64s, combinations
from warpline.trace.table import Names

SYNCHRONISING = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier")
"""No member leaves one of these before all have arrived. The root of a broadcast and a sender may leave early."""
PAIR = ("send", "recv")


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
    """By rank, which of its collectives it is."""


class Collectives(Sequence[Collective]):
    """The collectives of a job as arrays. Arrivals are in order of the collectives and, within one, of the ranks."""

    def __init__(self, ranks: Sequence[int], table: CollectiveTable, arrivals: Arrivals) -> None:
        self.ranks, self.table, self.arrivals = tuple(ranks), table, arrivals

    def __len__(self) -> int:
        return len(self.table.step)

    @overload
    def __getitem__(self, number: int) -> Collective: ...
    @overload
    def __getitem__(self, number: slice) -> list[Collective]: ...
    def __getitem__(self, number: int | slice) -> Collective | list[Collective]:
        if isinstance(number, slice):
            return [self[one] for one in range(len(self))[number]]
        number = range(len(self))[number]
        table = self.table
        first, beyond = self.first[number : number + 2].tolist()
        places, rows = self.arrivals.place[first:beyond].tolist(), self.arrivals.row[first:beyond].tolist()
        recorded = {self.ranks[place]: row for place, row in zip(places, rows, strict=True)}
        group, kind = table.group.text(number) or "", table.kind.text(number) or ""
        return Collective(
            group,
            tuple(recorded) if kind in PAIR else members_of(group) or tuple(recorded),
            kind,
            int(table.step[number]),
            int(table.order[number]),
            int(table.message_bytes[number]),
            recorded,
        )

    def __iter__(self) -> Iterator[Collective]:
        return (self[number] for number in range(len(self)))

    @cached_property
    def first(self) -> Int64s:
        """Where the arrivals of each collective start, and the end of the last."""
        return np.searchsorted(self.arrivals.collective, np.arange(len(self) + 1))

    @cached_property
    def arrived(self) -> Int64s:
        """How many ranks recorded each collective."""
        return np.diff(self.first)

    @cached_property
    def member_counts(self) -> Int64s:
        """How many ranks each collective has, also those without a recording."""
        known = np.array([*(len(members_of(word)) for word in self.table.group.words), 0])[self.table.group.codes]
        return np.where((known == 0) | self.table.kind.equal(*PAIR), self.arrived, known)

    @cached_property
    def rank_marks(self) -> Int64s:
        """A number for each collective that says which ranks recorded it: the same for the same ranks."""
        marks = np.random.default_rng(0).integers(1 << 40, size=len(self.ranks))
        return np.add.reduceat(marks[self.arrivals.place], self.first[:-1]) if len(self) else np.empty(0, np.int64)

    @cached_property
    def connected(self) -> list[set[int]]:
        """The ranks that collectives tie together, in sets that have none in common."""
        found: list[set[int]] = []
        for number in np.unique(self.rank_marks, return_index=True)[1].tolist():
            ranks = set(self[number].rows)
            ranks.update(*(one for one in found if one & ranks))
            found = [*(one for one in found if not one & ranks), ranks]
        return found

    @cached_property
    def synchronises(self) -> Bools:
        """Whether all members of a collective leave together."""
        return self.table.kind.equal(*SYNCHRONISING)

    @cached_property
    def _by_rank(self) -> list[Int64s]:
        order = np.argsort(self.arrivals.place, kind="stable")
        return np.split(order, np.searchsorted(self.arrivals.place[order], np.arange(1, len(self.ranks))))

    def arrivals_of(self, place: int) -> Int64s:
        """The arrivals of the rank at this position, as rows of `arrivals`."""
        return self._by_rank[place]

    def numbers_of(self, place: int, count: int) -> Int64s:
        """Which collective each of a rank's collectives is, or NONE."""
        own = self.arrivals_of(place)
        found = np.full(count, NONE, np.int64)
        found[self.arrivals.row[own]] = self.arrivals.collective[own]
        return found


def awaiting(outline: RankOutline, numbers: Int64s, absent: Sequence[int]) -> bool:
    """Whether a rank has collectives, of these numbers, that nobody else recorded, and that one of these ranks joins:
    how long it waits in them is unknown."""
    unmatched = numbers == NONE
    if not absent or not unmatched.any():
        return False
    is_peer = np.isin(outline.peer, absent)
    is_member = outline.group.where(lambda group: not set(absent).isdisjoint(members_of(group)))
    return bool((unmatched & np.where(outline.peer == NONE, is_member, is_peer)).any())


class CollectiveTable(Struct, frozen=True):
    """One row for each collective, as in `Collective`."""

    group: Names
    kind: Names
    step: Int64s
    order: Int64s
    message_bytes: Int64s


class Arrivals(Struct, frozen=True):
    """One row for each rank and collective that it recorded."""

    collective: Int64s
    place: Int64s
    """Position of the rank among the job's."""
    row: Int64s
    """Which of the rank's collectives it is."""


def match(outlines: Sequence[RankOutline]) -> Collectives:
    """The collectives that two or more ranks recorded, in order."""
    counts = [len(outline.step) for outline in outlines]
    place = np.repeat(np.arange(len(outlines)), counts)
    row = np.concatenate([np.arange(count) for count in counts])
    group = Names.joined([outline.group for outline in outlines])
    kind = Names.joined([outline.kind for outline in outlines])
    step = np.concatenate([outline.step for outline in outlines])
    first, which = combinations(*_keys(outlines, place, group, kind, step))
    shared = np.flatnonzero(np.bincount(which, minlength=len(first)) > 1)
    shared = shared[np.lexsort((first[shared], step[first[shared]]))]
    number = np.full(len(first), NONE, np.int64)
    number[shared] = np.arange(len(shared))
    order = np.argsort(number[which], kind="stable")
    order = order[np.searchsorted(number[which[order]], 0) :]
    arrivals = Arrivals(number[which[order]], place[order], row[order])
    samples = first[shared]
    starts = np.searchsorted(arrivals.collective, np.arange(len(shared)))
    sizes = np.concatenate([outline.message_bytes for outline in outlines])[order]
    table = CollectiveTable(
        group[samples],
        kind[samples],
        step[samples],
        _running_count(group.codes[samples], step[samples]),
        np.maximum.reduceat(sizes, starts) if len(starts) else np.empty(0, np.int64),
    )
    return Collectives([outline.rank for outline in outlines], table, arrivals)


def _keys(
    outlines: Sequence[RankOutline], place: Int64s, group: Names, kind: Names, step: Int64s
) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """Four numbers that are the same on all ranks for each collective."""
    rank = np.array([outline.rank for outline in outlines])[place]
    number = np.concatenate([outline.sequence for outline in outlines])
    is_pair, is_send = kind.equal(*PAIR), kind.equal("send")
    peer = np.where(is_pair, np.concatenate([outline.peer for outline in outlines]), NONE)
    peer = np.where(is_pair & (peer == NONE), _other_member(group, rank), peer)
    source, target = np.where(is_send, rank, peer), np.where(is_send, peer, rank)
    ranks = max(int(rank.max(initial=0)), int(peer.max(initial=0))) + 1
    meeting = np.where(peer != NONE, len(group.words) + source * ranks + target, group.codes)
    # Where a member did not record numbers, order counts.
    first, which = combinations(meeting, place)
    has_numbers = np.bincount(which, number != NONE, len(first)) > 0
    is_numbered = (number != NONE) & ~is_pair & ~np.isin(meeting, meeting[first[~has_numbers]])
    value = np.where(is_numbered, number, step)
    return meeting, is_numbered.astype(np.int64), value, _running_count(place, meeting, is_numbered, value)


def _other_member(group: Names, rank: Int64s) -> Int64s:
    """The other rank of a group of two; NONE for other groups."""
    pairs = [members_of(word) for word in group.words]
    table = np.array([pair if len(pair) == 2 else (NONE, NONE) for pair in [*pairs, ()]])[group.codes]
    is_first, is_second = (table == rank[:, None]).T
    return np.where(is_first, table[:, 1], np.where(is_second, table[:, 0], NONE))


def _running_count(*columns: Int64s | Bools) -> Int64s:
    """For each row, how many rows before it have the same values."""
    order = np.lexsort(columns)
    begins = np.ones(len(order), bool)
    begins[1:] = False
    for column in columns:
        begins[1:] |= column[order[1:]] != column[order[:-1]]
    position = np.arange(len(order))
    found = np.empty(len(order), np.int64)
    found[order] = position - np.maximum.accumulate(np.where(begins, position, 0))
    return found


def members_of(group: str) -> tuple[int, ...]:
    """The ranks of a group; empty if they are not known."""
    return tuple(map(int, group.split(","))) if group and group.replace(",", "").isdecimal() else ()
