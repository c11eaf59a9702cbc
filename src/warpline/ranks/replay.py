"""Replays all ranks together: a collective ends on every member at the last arrival plus its transfer.

Which rank waits for which does not depend on times, so ranks with the same instructions go through them side by side,
as arrays, and so do several changed versions of the job (scenarios). A rank that must wait for another one falls behind
its fellows.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from copy import copy

import numpy as np
from msgspec import Struct

from warpline.ranks.program import InstructionKind, Program
from warpline.trace.arrays import NONE, Bools, Floats, Int64s

_NEVER = -np.inf


class JobReplay(Struct, frozen=True):
    """The times of a replay."""

    start_ns: float
    """When the first rank starts."""
    ends_ns: Mapping[int, Floats]
    """For each rank, when the compute of each step is done."""

    @property
    def step_ns(self) -> float:
        """The job's step."""
        return step_time(self.start_ns, np.max(np.stack(list(self.ends_ns.values())), axis=0))


def step_time(start_ns: float, done_ns: Floats) -> float:
    """The step of a job whose steps are done at these times: from the end of the first to the end of the last.

    What the GPU had queued when the recording started is unknown, so the first step does not count, unless it is the
    only one.
    """
    if len(done_ns) == 1:
        return float(done_ns[0]) - start_ns
    return float(done_ns[-1] - done_ns[0]) / (len(done_ns) - 1)


class RankChange(Struct, frozen=True):
    """Other times for the program of a rank."""

    segments: Floats
    lag_ns: Floats
    start_ns: float


class Scenario(Struct, frozen=True):
    """What differs from the recording: what some ranks do, or the transfer times."""

    changed: Mapping[int, RankChange] = {}
    transfer_ns: Floats | None = None


class JointReplay:
    """All ranks of a job, to be replayed with changes."""

    def __init__(self, programs: Sequence[Program], arrived: Int64s, transfer_ns: Floats) -> None:
        """`arrived` is the number of ranks that join each collective."""
        self.transfer_ns, self._arrived = transfer_ns, arrived
        same: dict[bytes, list[Program]] = defaultdict(list)
        for program in programs:
            same[program.instructions].append(program)
        self._lanes = [_Lanes(members) for members in same.values()]
        self.starts_ns = {program.rank: program.start_ns for program in programs}

    @property
    def peers(self) -> dict[int, list[int]]:
        """For each rank the others that run the same program."""
        return {
            rank: [other for other in lanes.ranks if other != rank] for lanes in self._lanes for rank in lanes.ranks
        }

    def run(self, transfer_ns: Floats | None = None) -> JobReplay:
        """Replay the recording, or with other transfer times."""
        return self.run_all([Scenario(transfer_ns=transfer_ns)])[0]

    def run_all(self, scenarios: Sequence[Scenario]) -> list[JobReplay]:
        """Replay several scenarios at once."""
        transfer = np.stack([self.transfer_ns if one.transfer_ns is None else one.transfer_ns for one in scenarios])
        meetings = _Meetings(self._arrived, transfer)
        states = [_State(lanes, lanes.collectives, scenarios) for lanes in self._lanes]
        _advance_all(states, meetings)
        found = []
        for number in range(len(scenarios)):
            starts = min(float(state.starts[number].min()) for state in states)
            found.append(JobReplay(starts, {rank: ends for state in states for rank, ends in state.ends(number)}))
        return found

    def alone(self) -> dict[int, Floats]:
        """The time of each step of each rank if all others were always there before it.

        The first of several steps counts as nothing, as it does for the job.
        """
        result = {}
        for lanes in self._lanes:
            own, known = lanes.own_collectives()
            state = _State(lanes, own, [Scenario()])
            _advance_all([state], _Meetings(np.ones(known.size, np.int64), self.transfer_ns[known].reshape(1, -1)))
            for rank, ends in state.ends(0):
                lengths = np.diff([self.starts_ns[rank], *ends])
                result[rank] = np.concatenate([[0.0], lengths[1:]]) if len(lengths) > 1 else lengths
        return {rank: result[rank] for rank in self.starts_ns}

    def like_peers(self, ranks: Sequence[int], percentile: float) -> Scenario:
        """Each of these ranks does what this percentile of its other peers does, segment by segment."""
        return Scenario({rank: part for lanes in self._lanes for rank, part in lanes.like_peers(ranks, percentile)})

    def scaled(self, ranks: Sequence[int], factor: float) -> Scenario:
        """The segments of these ranks take so many times as long."""
        return Scenario({rank: part for lanes in self._lanes for rank, part in lanes.scaled(ranks, factor)})


MEETING = (InstructionKind.JOIN, InstructionKind.AWAIT_GPU, InstructionKind.AWAIT_CPU)
"""Instructions that name a collective."""
AT_ONCE = 4096
"""Segments whose percentiles are found at once."""


class _Lanes:
    """Ranks with the same instructions side by side: the last axis of each table is the rank."""

    def __init__(self, members: Sequence[Program]) -> None:
        self.ranks = [member.rank for member in members]
        self.instructions = members[0].instructions
        self.segments = np.stack([member.segments for member in members], axis=-1)
        self.lag_ns = np.stack([member.lag_ns for member in members], axis=-1)
        self.collectives = np.stack([member.collectives for member in members], axis=-1)
        self.after_compute = np.stack([member.after_compute for member in members], axis=-1)
        kinds = np.frombuffer(self.instructions, np.uint8)
        self.is_join: Bools = kinds[np.isin(kinds, MEETING)] == InstructionKind.JOIN
        """Which instructions of those that name a collective join it."""
        self.previous = np.stack([_previous(member) for member in members], axis=-1)
        self.latency_ns = np.array([member.latency_ns for member in members])
        self.start_ns = np.array([member.start_ns for member in members])
        self.step_count = self.instructions.count(InstructionKind.STEP)

    def own_collectives(self) -> tuple[Int64s, Int64s]:
        """The collectives as if each rank had its own, which nobody else joins: a row of a table of the rank's joins;
        and that table."""
        joined = self.collectives[self.is_join]
        own = np.empty_like(self.collectives)
        for lane in range(len(self.ranks)):
            order = np.argsort(joined[:, lane], kind="stable")
            found = np.searchsorted(joined[order, lane], self.collectives[:, lane])
            own[:, lane] = order[found] * len(self.ranks) + lane
        return own, joined

    def like_peers(self, ranks: Sequence[int], percentile: float) -> Iterator[tuple[int, RankChange]]:
        """What these ranks do if they do as the others."""
        peers = [lane for lane, rank in enumerate(self.ranks) if rank not in ranks]
        if not peers or len(peers) == len(self.ranks):
            return
        segments, lag_ns = (_percentile(table, peers, percentile) for table in (self.segments, self.lag_ns))
        start_ns = float(np.median(self.start_ns[peers]))
        for lane, rank in enumerate(self.ranks):
            if rank in ranks:  # lateness from before the recording is fixed, too
                yield rank, RankChange(segments, lag_ns, min(float(self.start_ns[lane]), start_ns))

    def scaled(self, ranks: Sequence[int], factor: float) -> Iterator[tuple[int, RankChange]]:
        """What these ranks do if their segments take so many times as long."""
        for lane, rank in enumerate(self.ranks):
            if rank in ranks:
                yield (
                    rank,
                    RankChange(self.segments[..., lane] * factor, self.lag_ns[:, lane], float(self.start_ns[lane])),
                )


def _percentile(table: Floats, lanes: Sequence[int], percentile: float) -> Floats:
    """A percentile over some lanes; of minus infinity it is minus infinity."""
    parts = (table[first : first + AT_ONCE] for first in range(0, max(len(table), 1), AT_ONCE))
    found = [np.percentile(part[..., lanes], percentile, axis=-1, method="nearest") for part in parts]
    return np.asarray(np.concatenate(found), np.float64)


def _previous(program: Program) -> Int64s:
    """For each JOIN, which JOIN came before it on its stream, or NONE."""
    found = np.full(len(program.stream), NONE, np.int64)
    for stream in np.unique(program.stream):
        own = np.flatnonzero(program.stream == stream)
        found[own[1:]] = own[:-1]
    return found


class _Meetings:
    """The collectives of a replay: a row for each scenario. The last column stands for none."""

    def __init__(self, arrived: Int64s, transfer_ns: Floats) -> None:
        self.missing = np.append(arrived, 0)
        self.transfer_ns = transfer_ns
        shape = len(transfer_ns), len(arrived) + 1
        self.arrival_ns, self.ended_ns = np.full(shape, _NEVER), np.full(shape, _NEVER)

    def join(self, numbers: Int64s, arrival_ns: Floats) -> None:
        """These collectives, one for each rank, are joined at these times."""
        if (numbers == numbers[0]).all():
            counts, numbers, arrival_ns = np.array([len(numbers)]), numbers[:1], arrival_ns.max(axis=1, keepdims=True)
        else:
            order = np.argsort(numbers, kind="stable")
            first = np.flatnonzero(np.diff(numbers[order], prepend=NONE))
            counts = np.diff(first, append=len(order))
            numbers, arrival_ns = numbers[order[first]], np.maximum.reduceat(arrival_ns[:, order], first, axis=1)
        latest = np.maximum(self.arrival_ns[:, numbers], arrival_ns)
        self.arrival_ns[:, numbers] = latest
        is_open = self.missing[numbers] > 0
        if not is_open.all():
            numbers, counts, latest = numbers[is_open], counts[is_open], latest[:, is_open]
        self.missing[numbers] -= counts
        self.ended_ns[:, numbers] = latest + self.transfer_ns[:, numbers]

    def give_up(self, number: int) -> None:
        """End a collective without those who never come."""
        self.missing[number] = 0
        self.ended_ns[:, number] = self.arrival_ns[:, number] + self.transfer_ns[:, number]


class _State:
    """When the CPUs and GPUs of some lanes are free: a row for each scenario."""

    def __init__(self, lanes: _Lanes, collectives: Int64s, scenarios: Sequence[Scenario]) -> None:
        self.lanes, self.collectives = lanes, collectives
        joined = collectives[lanes.is_join]
        # The number of the collective before on the same stream; NONE finds the column of `_Meetings` for none.
        self.previous = np.where(lanes.previous == NONE, NONE, np.take_along_axis(joined, lanes.previous, axis=0))
        self.starts = np.tile(lanes.start_ns, (len(scenarios), 1))
        self._scenario, self._lane, self._column = [], [], []
        columns: dict[int, int] = {}
        parts: list[RankChange] = []
        for number, scenario in enumerate(scenarios):
            for lane, rank in enumerate(lanes.ranks):
                part = scenario.changed.get(rank)
                if part is not None:
                    if id(part.segments) not in columns:
                        columns[id(part.segments)] = len(parts)
                        parts.append(part)
                    self._scenario.append(number)
                    self._lane.append(lane)
                    self._column.append(columns[id(part.segments)])
                    self.starts[number, lane] = part.start_ns
        self._segments = np.stack([part.segments for part in parts], axis=-1) if parts else None
        self._lags = np.stack([part.lag_ns for part in parts], axis=-1) if parts else None
        self.cpu_ns, self.gpu_ns = self.starts.copy(), self.starts.copy()
        self.done_ns = np.full((lanes.step_count, *self.starts.shape), _NEVER)

    def segment(self, number: int) -> Floats:
        """The four numbers of a segment, by scenario and lane."""
        return self._changed(self.lanes.segments[number][:, None, :], self._segments, number)

    def lag(self, number: int) -> Floats:
        """The lag of a JOIN, by scenario and lane."""
        return self._changed(self.lanes.lag_ns[number][None, :], self._lags, number)

    def _changed(self, own: Floats, others: Floats | None, number: int) -> Floats:
        if others is None:
            return own
        found = np.repeat(own, len(self.starts), axis=-2)
        found[..., self._scenario, self._lane] = others[number][..., self._column]
        return found

    def ends(self, scenario: int) -> Iterator[tuple[int, Floats]]:
        """For each rank, when the compute of each step is done."""
        return zip(self.lanes.ranks, self.done_ns[:, scenario].T, strict=True)


class _Front:
    """Some lanes at the same instruction."""

    def __init__(self, state: _State, lanes: Int64s) -> None:
        self.state, self.lanes = state, lanes
        self.at = 0
        self._segment = self._meeting = self._join = self._step = 0

    @property
    def where(self) -> tuple[int, int]:
        """What fronts must share to be one."""
        return id(self.state), self.at

    def _left_behind(self, lanes: Int64s) -> _Front:
        """A front of these lanes, at the same instruction."""
        other = copy(self)
        other.lanes = lanes
        return other

    def advance(self, meetings: _Meetings, left_behind: list[_Front]) -> int | None:
        """Run until all lanes await a collective that has not ended, and return it; None at the end of the program.
        Lanes that must wait while others need not are left behind."""
        state = self.state
        code, count = state.lanes.instructions, len(state.lanes.ranks)
        while self.at < len(code):
            kind = code[self.at]
            lanes = slice(None) if len(self.lanes) == count else self.lanes
            if kind == InstructionKind.SEGMENT:
                a, b, c, d = state.segment(self._segment)
                gpu, cpu = state.gpu_ns[:, lanes], state.cpu_ns[:, lanes]
                later = np.maximum(gpu + a[:, lanes], cpu + b[:, lanes])
                state.cpu_ns[:, lanes] = np.maximum(gpu + c[:, lanes], cpu + d[:, lanes])
                state.gpu_ns[:, lanes] = later
                self._segment += 1
            elif kind == InstructionKind.STEP:
                if self._step:
                    state.done_ns[self._step - 1][:, lanes] = state.gpu_ns[:, lanes]
                self._step += 1
            else:
                is_join = kind == InstructionKind.JOIN
                awaited = (state.previous[self._join] if is_join else state.collectives[self._meeting])[lanes]
                is_missing = meetings.missing[awaited] > 0
                if is_missing.any():
                    if is_missing.all():
                        return int(awaited[0])
                    left_behind.append(self._left_behind(self.lanes[is_missing]))
                    self.lanes = self.lanes[~is_missing]
                    continue
                self._meet(kind, lanes, meetings, meetings.ended_ns[:, awaited])
                self._meeting += 1
                self._join += is_join
            self.at += 1
        state.done_ns[self._step - 1][:, self.lanes] = state.gpu_ns[:, self.lanes]
        return None

    def _meet(self, kind: int, lanes: Int64s | slice, meetings: _Meetings, ended_ns: Floats) -> None:
        state = self.state
        if kind == InstructionKind.AWAIT_GPU:
            state.gpu_ns[:, lanes] = np.maximum(state.gpu_ns[:, lanes], ended_ns)
        elif kind == InstructionKind.AWAIT_CPU:
            state.cpu_ns[:, lanes] = np.maximum(state.cpu_ns[:, lanes], ended_ns)
        else:
            arrival = np.maximum(state.cpu_ns[:, lanes] + state.lanes.latency_ns[lanes], ended_ns)
            after_compute = state.lanes.after_compute[self._join][lanes]
            arrival = np.where(after_compute, np.maximum(arrival, state.gpu_ns[:, lanes]), arrival)
            arrival = arrival + state.lag(self._join)[:, lanes]
            meetings.join(state.collectives[self._meeting][lanes], arrival)


def _advance_all(states: Sequence[_State], meetings: _Meetings) -> None:
    """Run all programs to their ends."""
    waiting = deque(_Front(state, np.arange(len(state.lanes.ranks))) for state in states)
    stuck = 0
    while waiting:
        front = waiting.popleft()
        before, behind = front.at, list[_Front]()
        blocked = front.advance(meetings, behind)
        is_moved = front.at > before or blocked is None
        stuck = 0 if is_moved else stuck + 1
        for one in behind if blocked is None else [*behind, front]:
            fellow = next((other for other in waiting if other.where == one.where), None)
            if fellow is None:
                waiting.append(one)
            else:
                fellow.lanes = np.sort(np.concatenate([fellow.lanes, one.lanes]))
        if blocked is not None and stuck > len(waiting):
            # Damaged recordings can order collectives differently: end one without those who never come.
            meetings.give_up(blocked)
            stuck = 0
