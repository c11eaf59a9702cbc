"""Where compute and the CPU wait for a collective, by the vote of all ranks that communicate alike.

An event wait between streams is not recorded, but it shows: an operation whose stream and launch were ready starts
right after a collective ends. One rank may show it by chance and another not at all (the straggler's collectives
never wait), so all ranks and steps vote, and an operation that starts before the collective ends votes against.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Literal

import numpy as np
from msgspec import Struct

from warpline.ranks.timeline import RankOutline, RankTimeline
from warpline.trace.arrays import NONE, Bools, Floats, Int64s, combinations

SLACK_NS = 30_000.0
"""What starts so soon after the end of a collective waited for it."""
TOLERANCE_NS = 3_000.0
"""Moments closer than this may be one: older files round both starts and lengths to microseconds."""
MIN_VOTES = 2
MAX_AGAINST = 0.1
SHORTEST_LATENCY_NS, LONGEST_LATENCY_NS = 1_000.0, 15_000.0
"""Bounds of the launch latency that a recording shows: on an idle device a launch takes 1 to 20 µs to start."""

Role = str
"""A digest of the collectives of each step: ranks with the same role run the same program."""


class Wait(Struct, frozen=True):
    """A place of the program that waits for a collective."""

    who: Literal["compute", "cpu"]
    after: int
    """Number of the step's collectives that were launched before."""
    place: int
    """Which operation, or which waiting call of the CPU, since then."""
    collective: int
    """Which collective of its step is waited for."""
    steps_back: int
    """How many steps before."""


class Places:
    """Where the operations of a rank stand in its steps."""

    def __init__(self, line: RankTimeline, latency_ns: float) -> None:
        self.timeline, self.rank, self.latency_ns = line, line.rank, latency_ns
        count, step_count = len(line.step), len(line.steps)
        rows = np.arange(count)
        self.comm = np.flatnonzero(line.is_comm)
        """The collectives."""
        before = np.append(np.cumsum(line.is_comm) - line.is_comm, len(self.comm))
        self.step_rows = np.searchsorted(line.step, np.arange(step_count + 1))
        """The first operation of each step, and the end of the last."""
        self.step_comm = before[self.step_rows]
        """How many collectives come before each step, and in all."""
        self.collectives_before = before[:-1] - self.step_comm[line.step]
        """For each row, the number of the step's collectives before it."""
        begins = np.ones(count, bool)
        begins[1:] = (np.diff(line.step) != 0) | (np.diff(self.collectives_before) != 0)
        begins &= ~line.is_comm
        self.begins = np.flatnonzero(begins)
        """The first operation after each collective, or of each step."""
        self.place = np.where(line.is_comm, 0, rows - np.maximum.accumulate(np.where(begins, rows, 0)))
        """For each row that is no collective, its number since the last one or since the start of the step."""
        ends = np.where(line.is_comm, -np.inf, line.end_ns)
        self.free_ns = np.concatenate([[-np.inf], np.maximum.accumulate(ends)])
        """For each row, and after the last, when the compute launched before it is done."""
        self.wait_rows = np.searchsorted(line.launch_ns, line.waits[:, 0])
        """For each waiting call of the CPU, the first row launched after it."""

    @cached_property
    def role(self) -> Role:
        """The collectives of each step."""
        kinds, counts = self.timeline.collective[self.comm].texts.tolist(), np.diff(self.step_comm).tolist()
        return hashlib.blake2b(f"{counts} {' '.join(kinds)}".encode(), digest_size=16).hexdigest()

    @cached_property
    def calls(self) -> Mapping[tuple[int, int, int], int]:
        """The waiting calls of the CPU, by step, number of collectives before, and place."""
        line, found, seen = self.timeline, {}, Counter[tuple[int, int]]()
        for number, row in enumerate(self.wait_rows.tolist()):
            if row:
                after = int(self.collectives_before[row - 1]) + int(line.is_comm[row - 1])
                key = int(line.step[row - 1]), after
                found[(*key, seen[key])] = number
                seen[key] += 1
        return found

    @cached_property
    def _first_rows(self) -> Int64s:
        """For each step and number of collectives before, the first operation there, or NONE."""
        table = np.full((len(self.step_rows) - 1, int(np.diff(self.step_comm).max(initial=0)) + 1), NONE, np.int64)
        table[self.timeline.step[self.begins], self.collectives_before[self.begins]] = self.begins
        return table

    def rows_of(self, waits: Sequence[Wait]) -> Int64s:
        """For each step and wait, the operation at this place, or NONE."""
        after, place = (np.array([getattr(wait, name) for wait in waits], np.int64) for name in ("after", "place"))
        table = self._first_rows
        known = after < table.shape[1]
        first = np.where(known, table[:, np.where(known, after, 0)], NONE)
        row = np.where(first == NONE, NONE, first + place)
        row = np.where(row < len(self.place), row, NONE)
        is_there = (row != NONE) & (self.place[row] == place) & ~self.timeline.is_comm[row]
        return np.where(is_there, row, NONE)

    def collectives_of(self, waits: Sequence[Wait]) -> Int64s:
        """For each step and wait, the row of the collective that is waited for, or NONE."""
        steps = np.arange(len(self.step_rows) - 1)[:, None]
        back = steps - np.array([wait.steps_back for wait in waits], np.int64)
        number = np.array([wait.collective for wait in waits], np.int64)
        at = self.step_comm[np.maximum(back, 0)] + number
        is_there = (back >= 0) & (at < self.step_comm[np.maximum(back, 0) + 1])
        return np.where(is_there, np.append(self.comm, NONE)[np.where(is_there, at, NONE)], NONE)


def launch_latency(outlines: Iterable[RankOutline]) -> float:
    """Time from launch to start where nothing is queued. A rank that always waits for others shows no such operation,
    so it is the shortest of the job."""
    found = min((outline.latency_ns for outline in outlines), default=0.0)
    return float(np.clip(found, SHORTEST_LATENCY_NS, LONGEST_LATENCY_NS))


def vote(all_places: Iterable[Places]) -> dict[Role, list[Wait]]:
    """The waits of each role. The places are gone through twice: for the votes, and for those against."""
    votes: dict[Role, Counter[Wait]] = defaultdict(Counter)
    for places in all_places:
        votes[places.role].update(_seen_in_compute(places))
        votes[places.role].update(_seen_on_cpu(places))
    asked = {role: [wait for wait, count in found.items() if count >= MIN_VOTES] for role, found in votes.items()}
    against: dict[Role, Int64s] = {role: np.zeros(len(waits), np.int64) for role, waits in asked.items()}
    for places in all_places:
        against[places.role] += _against(places, asked[places.role])
    return {
        role: sorted(
            (
                wait
                for wait, count in zip(asked[role], against[role].tolist(), strict=True)
                if count <= MAX_AGAINST * found[wait]
            ),
            key=lambda wait: (wait.after, wait.place, wait.collective),
        )
        for role, found in votes.items()
    }


def _seen_in_compute(places: Places) -> Counter[Wait]:
    """Operations that start right after a collective, though they were launched and their stream was free before."""
    line = places.timeline
    ready = np.maximum(places.free_ns[:-1], line.launch_ns + places.latency_ns)
    rows = np.flatnonzero(~line.is_comm & (line.start_ns > ready + TOLERANCE_NS))
    found = _released_by(places, rows, line.start_ns[rows])
    rows, found = rows[found != NONE], found[found != NONE]
    columns = (
        places.collectives_before[rows],
        places.place[rows],
        places.collectives_before[found],
        line.step[rows] - line.step[found],
    )
    first, which = combinations(*columns)
    each = zip(*(column[first].tolist() for column in columns), np.bincount(which).tolist(), strict=True)
    return Counter({Wait("compute", *place): count for *place, count in each})


def _seen_on_cpu(places: Places) -> Counter[Wait]:
    """Waiting calls that return right after a collective, when compute was done before."""
    line = places.timeline
    rows, (starts, ends) = places.wait_rows, line.waits.T
    found = _released_by(places, rows, ends)
    is_seen = (ends - starts > TOLERANCE_NS) & (found != NONE)
    is_seen &= np.append(line.end_ns, 0.0)[found] > np.maximum(places.free_ns[rows] + TOLERANCE_NS, starts)
    votes: Counter[Wait] = Counter()
    for (_, after, place), number in places.calls.items():
        if is_seen[number]:
            collective = int(found[number])
            back = int(line.step[rows[number] - 1] - line.step[collective])
            votes[Wait("cpu", after, place, int(places.collectives_before[collective]), back)] += 1
    return votes


def _released_by(places: Places, rows: Int64s, moments_ns: Floats) -> Int64s:
    """For each row, the collective of its step or the one before, launched before the row, that ended just before the
    moment; or NONE."""
    line = places.timeline
    by_end = places.comm[np.argsort(line.end_ns[places.comm], kind="stable")]
    ends = line.end_ns[by_end]
    steps = np.append(line.step, line.step[-1:])[rows]
    found = np.full(len(rows), NONE, np.int64)
    at = np.searchsorted(ends, moments_ns + 1_000.0, "right") - 1
    asked = np.arange(len(rows))
    while True:
        asked = asked[at[asked] >= 0]
        asked = asked[ends[at[asked]] > moments_ns[asked] - SLACK_NS]
        if not len(asked):
            return found
        collective = by_end[at[asked]]
        fits = (collective < rows[asked]) & (line.step[collective] >= steps[asked] - 1)
        found[asked[fits]] = collective[fits]
        asked = asked[~fits]
        at[asked] -= 1


def _against(places: Places, waits: Sequence[Wait]) -> Int64s:
    """For each wait, in how many steps the rank did not wait there."""
    if not waits:
        return np.zeros(0, np.int64)
    line = places.timeline
    rows, collectives = places.rows_of(waits), places.collectives_of(waits)
    is_early: Bools = line.start_ns[rows] < line.end_ns[collectives] - TOLERANCE_NS
    is_asked = np.array([wait.who == "compute" for wait in waits])
    return np.asarray((is_early & (rows != NONE) & (collectives != NONE) & is_asked).sum(axis=0))
