"""Where compute and the CPU wait for a collective, by the vote of all ranks that communicate alike.

An event wait between streams is not recorded, but it shows: an operation whose stream and launch were ready starts
right after a collective ends. One rank may show it by chance and another not at all (the straggler's collectives
never wait), so all ranks and steps vote, and an operation that starts before the collective ends votes against.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import numpy as np
from msgspec import Struct

from warpline.ranks.timeline import RankTimeline
from warpline.trace.arrays import Floats, Int64s

SLACK_NS = 30_000.0
"""What starts so soon after the end of a collective waited for it."""
TOLERANCE_NS = 3_000.0
MIN_VOTES = 2
MAX_AGAINST = 0.1
SHORTEST_LATENCY_NS, LONGEST_LATENCY_NS = 1_000.0, 15_000.0

Role = tuple[tuple[str, ...], ...]
"""The collectives of each step: ranks with the same role run the same program."""


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


class Places(Struct, frozen=True):
    """Where the operations of a rank stand in its steps."""

    timeline: RankTimeline
    latency_ns: float
    collectives_before: Int64s
    """For each row, the number of the step's collectives before it."""
    place: Int64s
    """For each row that is no collective, its number since the last one or since the start of the step."""
    free_ns: Floats
    """For each row, and after the last, when the compute launched before it is done."""
    comm_rows: tuple[Int64s, ...]
    """The collectives of each step."""
    wait_rows: Int64s
    """For each waiting call of the CPU, the first row launched after it."""

    first_rows: Mapping[tuple[int, int], int]
    """For each step and number of collectives before, the first operation there."""
    calls: Mapping[tuple[int, int, int], int]
    """The waiting calls of the CPU, by step, number of collectives before, and place."""

    @property
    def rank(self) -> int:
        """Whose places."""
        return self.timeline.rank

    @property
    def role(self) -> Role:
        """The collectives of each step."""
        return tuple(tuple(self.timeline.collective[rows]) for rows in self.comm_rows)

    def row_of(self, step: int, wait: Wait) -> int | None:
        """The operation at this place of a step."""
        first = self.first_rows.get((step, wait.after))
        if first is None or first + wait.place >= len(self.place):
            return None
        row = first + wait.place
        return row if self.place[row] == wait.place and not self.timeline.is_comm[row] else None

    def collective_of(self, step: int, wait: Wait) -> int | None:
        """The row of the collective that is waited for in a step."""
        back = step - wait.steps_back
        if back < 0 or wait.collective >= len(self.comm_rows[back]):
            return None
        return int(self.comm_rows[back][wait.collective])


def launch_latency(timelines: Iterable[RankTimeline]) -> float:
    """Time from launch to start where nothing is queued. A rank that always waits for others shows no such operation,
    so it is the shortest of the job."""
    found = [float(np.percentile(line.start_ns - line.launch_ns, 2)) for line in timelines if len(line.start_ns)]
    return float(np.clip(min(found, default=0.0), SHORTEST_LATENCY_NS, LONGEST_LATENCY_NS))


def places_of(line: RankTimeline, latency_ns: float) -> Places:
    """Where the operations of a rank stand."""
    count, step_count = len(line.step), len(line.steps)
    rows = np.arange(count)
    comm = np.flatnonzero(line.is_comm)
    before = np.append(np.cumsum(line.is_comm) - line.is_comm, len(comm))
    in_step = before[:-1] - before[np.searchsorted(line.step, np.arange(step_count))][line.step]
    begins = np.ones(count, bool)
    begins[1:] = (np.diff(line.step) != 0) | (np.diff(in_step) != 0)
    begins &= ~line.is_comm
    place = np.where(line.is_comm, 0, rows - np.maximum.accumulate(np.where(begins, rows, 0)))
    ends = np.where(line.is_comm, -np.inf, line.end_ns)
    free = np.concatenate([[-np.inf], np.maximum.accumulate(ends)])
    wait_rows = np.searchsorted(line.launch_ns, line.waits[:, 0])
    calls, seen = {}, Counter[tuple[int, int]]()
    for number, row in enumerate(wait_rows.tolist()):
        if row == 0:
            continue
        key = int(line.step[row - 1]), int(in_step[row - 1]) + int(line.is_comm[row - 1])
        calls[(*key, seen[key])] = number
        seen[key] += 1
    return Places(
        line,
        latency_ns,
        in_step,
        place,
        free,
        tuple(comm[line.step[comm] == step] for step in range(step_count)),
        wait_rows,
        {(int(line.step[row]), int(in_step[row])): row for row in np.flatnonzero(begins).tolist()},
        calls,
    )


def vote(all_places: Sequence[Places]) -> dict[Role, list[Wait]]:
    """The waits of each role."""
    by_role: dict[Role, list[Places]] = defaultdict(list)
    for places in all_places:
        by_role[places.role].append(places)
    return {role: _elected(members) for role, members in by_role.items()}


def _elected(members: Sequence[Places]) -> list[Wait]:
    votes: Counter[Wait] = Counter()
    for places in members:
        votes.update(_seen_in_compute(places))
        votes.update(_seen_on_cpu(places))
    found = []
    for wait, count in votes.items():
        if count >= MIN_VOTES and sum(_against(places, wait) for places in members) <= MAX_AGAINST * count:
            found.append(wait)
    return sorted(found, key=lambda wait: (wait.after, wait.place, wait.collective))


def _seen_in_compute(places: Places) -> Iterator[Wait]:
    """Operations that start right after a collective, though they were launched and their stream was free before."""
    line = places.timeline
    ready = np.maximum(places.free_ns[:-1], line.launch_ns + places.latency_ns)
    late = np.flatnonzero(~line.is_comm & (line.start_ns > ready + TOLERANCE_NS))
    for row in late.tolist():
        found = _released_by(places, row, float(line.start_ns[row]))
        if found is not None:
            yield _wait(places, "compute", int(places.collectives_before[row]), int(places.place[row]), row, found)


def _seen_on_cpu(places: Places) -> Iterator[Wait]:
    """Waiting calls that return right after a collective, when compute was done before."""
    line = places.timeline
    for (_, after, place), number in places.calls.items():
        start, end = line.waits[number].tolist()
        row = int(places.wait_rows[number])
        found = _released_by(places, row, end) if end - start > TOLERANCE_NS else None
        if found is not None and line.end_ns[found] > max(places.free_ns[row] + TOLERANCE_NS, start):
            yield _wait(places, "cpu", after, place, row - 1, found)


def _released_by(places: Places, row: int, moment_ns: float) -> int | None:
    """The collective launched before the row that ended just before the moment."""
    line = places.timeline
    step = int(line.step[min(row, len(line.step) - 1)])
    recent = np.concatenate([places.comm_rows[at] for at in range(max(step - 1, 0), step + 1)])
    recent = recent[recent < row]
    near = recent[(line.end_ns[recent] > moment_ns - SLACK_NS) & (line.end_ns[recent] <= moment_ns + 1_000.0)]
    return int(near[np.argmax(line.end_ns[near])]) if len(near) else None


def _wait(places: Places, who: Literal["compute", "cpu"], after: int, place: int, row: int, collective: int) -> Wait:
    line = places.timeline
    back = int(line.step[row] - line.step[collective])
    return Wait(who, after, place, int(places.collectives_before[collective]), back)


def _against(places: Places, wait: Wait) -> int:
    """In how many steps the rank did not wait there."""
    if wait.who == "cpu":
        return 0
    line, count = places.timeline, 0
    for step in range(len(line.steps)):
        row, collective = places.row_of(step, wait), places.collective_of(step, wait)
        if row is not None and collective is not None:
            count += bool(line.start_ns[row] < line.end_ns[collective] - TOLERANCE_NS)
    return count
