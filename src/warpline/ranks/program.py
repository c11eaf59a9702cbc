"""A rank as a short program: between two points where it meets other ranks, its kernels and launches are one formula.

The state is when the GPU and the CPU are free. A launch, a kernel and a call that waits for the GPU each map it by
additions and maxima, and so does any sequence of them (max-plus algebra; Baccelli et al., Synchronization and
Linearity, 1992): ``gpu = max(gpu + a, cpu + b)``, ``cpu = max(gpu + c, cpu + d)``. Four numbers a segment replay
exactly what thousands of kernels would.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from enum import IntEnum

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from warpline.ranks.dependencies import Places, Role, Wait
from warpline.trace.arrays import NONE, Bools, Floats, Int64s

TOLERANCE_NS = 2_000.0


class InstructionKind(IntEnum):
    """Kinds of instructions."""

    SEGMENT = 0
    JOIN = 1
    AWAIT_GPU = 2
    AWAIT_CPU = 3
    STEP = 4


class Instruction(Struct, frozen=True):
    """One instruction: a segment by its number, a collective to join or await by its number, or a step that begins."""

    kind: InstructionKind
    number: int
    join: int = NONE
    """For JOIN, which of the rank's own collectives."""


class Program(Struct, frozen=True):
    """What one rank does."""

    rank: int
    instructions: tuple[Instruction, ...]
    segments: Floats
    """A row of a, b, c, d for each segment."""
    lag_ns: Floats
    """For each collective of the rank, how much later it starts than launch, stream and compute allow."""
    stream: Int64s
    """Its stream."""
    after_compute: Bools
    """Whether it starts after the compute launched before it."""
    start_ns: float
    """When the rank starts its first step."""
    latency_ns: float

    @property
    def shape(self) -> tuple[InstructionKind, ...]:
        """What programs must share to be compared segment by segment."""
        return tuple(one.kind for one in self.instructions)


Segment = tuple[float, float, float, float]
"""a, b, c and d of one segment."""
NOTHING: Segment = (0.0, -np.inf, -np.inf, 0.0)
"""The segment that changes nothing."""


def chain(first: Segment, then: Segment) -> Segment:
    """The segment that does one after the other."""
    a, b, c, d = first
    e, f, g, h = then
    return max(a + e, c + f), max(b + e, d + f), max(a + g, c + h), max(b + g, d + h)


class Recording:
    """All ranks of a job as they were recorded, from which programs are made."""

    def __init__(
        self,
        all_places: Sequence[Places],
        waits: Mapping[Role, Sequence[Wait]],
        collective_of: Mapping[int, Int64s],
    ) -> None:
        """`collective_of` says for each rank which collective of the job each row is, or NONE."""
        self._collective_of = collective_of
        self._items = [
            _Items(places, _awaited(places, waits[places.role], collective_of[places.rank])) for places in all_places
        ]
        alike: dict[tuple[Role, bytes], list[_Items]] = defaultdict(list)
        for items in self._items:
            alike[items.places.role, (items.row < 0).tobytes()].append(items)
        self._typical_ns = {
            items.places.rank: typical
            for same in alike.values()
            for typical in [np.median([items.cpu_ns for items in same], axis=0)]
            for items in same
        }
        """For each rank the CPU time before each item on the median of the ranks that do the same."""

    def programs(self) -> list[Program]:
        """The program of each rank."""
        return [_program(items, self._collective_of[items.places.rank]) for items in self._items]

    def stalls_ns(self, stall_ns: float) -> dict[int, float]:
        """The time of each rank's host stalls: CPU time between two launches that is longer by so much than the median
        of the ranks at that place."""
        return {items.places.rank: float(self._stalls(items, stall_ns).sum()) for items in self._items}

    def calm_programs(self, stall_ns: float) -> list[Program]:
        """The programs without these stalls, and without those before the first step."""
        typical_ns = float(np.median([items.places.timeline.steps[0, 0] for items in self._items]))
        calm = []
        for items in self._items:
            steady = items.with_cpu(items.cpu_ns - self._stalls(items, stall_ns))
            program = _program(steady, self._collective_of[items.places.rank])
            # A rank that starts its first step so much later than the others stalled before the recording.
            is_late = program.start_ns - typical_ns > stall_ns
            calm.append(replace(program, start_ns=typical_ns) if is_late else program)
        return calm

    def _stalls(self, items: _Items, stall_ns: float) -> Floats:
        longer = items.cpu_ns - self._typical_ns[items.places.rank]
        return np.where(longer > stall_ns, longer, 0.0)


def _program(items: _Items, collective: Int64s) -> Program:
    places, awaited = items.places, items.awaited
    line = places.timeline
    instructions: list[Instruction] = []
    segments: list[Segment] = []
    joins: list[int] = []
    begin = 0

    def put(segment: Segment) -> None:
        instructions.append(Instruction(InstructionKind.SEGMENT, len(segments)))
        segments.append(segment)

    def close(end: int) -> None:
        nonlocal begin
        put(items.segment(begin, end))
        begin = end

    for item, row in items.anchors(collective):
        if row < 0:  # a waiting call of the CPU
            put(chain(items.segment(begin, item), (0.0, -np.inf, -np.inf, float(items.cpu_ns[item]))))
            begin = item + 1
            for at in awaited.cpu[~row]:
                instructions.append(Instruction(InstructionKind.AWAIT_CPU, int(collective[at])))
            put(items.call(~row))
            continue
        is_first = row == 0 or line.step[row] != line.step[row - 1]
        if is_first:
            if row:
                close(item)
            instructions.append(Instruction(InstructionKind.STEP, int(line.step[row])))
        for at in awaited.compute.get(row, ()):
            close(item)
            instructions.append(Instruction(InstructionKind.AWAIT_GPU, int(collective[at])))
        if collective[row] != NONE:
            close(item + 1)
            instructions.append(Instruction(InstructionKind.JOIN, int(collective[row]), len(joins)))
            joins.append(row)
    close(len(items.cpu_ns))
    rows = np.array(joins, np.int64)
    after_compute = line.start_ns[rows] >= places.free_ns[rows] - TOLERANCE_NS
    return Program(
        line.rank,
        tuple(instructions),
        np.array(segments),
        _lags(places, rows, after_compute),
        line.stream[rows],
        after_compute,
        float(line.steps[0, 0]),
        places.latency_ns,
    )


def _lags(places: Places, rows: Int64s, after_compute: Bools) -> Floats:
    """How much later each collective starts than its launch, its stream and the compute before it allow."""
    line = places.timeline
    stream_free: dict[int, float] = {}
    lags = np.zeros(len(rows))
    for number, row in enumerate(rows.tolist()):
        stream = int(line.stream[row])
        ready = max(float(line.launch_ns[row]) + places.latency_ns, stream_free.get(stream, -np.inf))
        if after_compute[number]:
            ready = max(ready, float(places.free_ns[row]))
        lags[number] = max(float(line.start_ns[row]) - ready, 0.0)
        stream_free[stream] = float(line.end_ns[row])
    return lags


class _Awaited(Struct, frozen=True):
    """The collectives, by row, that each operation and each waiting call of the CPU waits for."""

    compute: dict[int, list[int]]
    cpu: dict[int, list[int]]


def _awaited(places: Places, waits: Sequence[Wait], collective: Int64s) -> _Awaited:
    compute: dict[int, list[int]] = defaultdict(list)
    cpu: dict[int, list[int]] = defaultdict(list)
    for step in range(len(places.timeline.steps)):
        for wait in waits:
            at = places.collective_of(step, wait)
            if at is None or collective[at] == NONE:
                continue
            if wait.who == "compute":
                row = places.row_of(step, wait)
                if row is not None and at < row:
                    compute[row].append(at)
            else:
                call = places.calls.get((step, wait.after, wait.place))
                if call is not None:
                    cpu[call].append(at)
    return _Awaited(dict(compute), dict(cpu))


class _Items:
    """Operations and waiting calls in the order of the CPU, with the CPU time before each and what it does then."""

    def __init__(self, places: Places, awaited: _Awaited) -> None:
        line = places.timeline
        count, calls = len(line.launch_ns), len(line.waits)
        at = np.concatenate([line.launch_ns, line.waits[:, 0]])
        order = np.lexsort((np.arange(count + calls) < count, at))
        self.row = np.where(order < count, order, ~(order - count))
        """Row of each operation; ~number of each waiting call."""
        leave = np.concatenate([line.launch_ns, line.waits[:, 1]])[order]
        at = at[order]
        left = np.concatenate([[line.steps[0, 0]], np.maximum.accumulate(leave)[:-1]])
        self.cpu_ns = np.maximum(at - left, 0.0)
        """CPU time from the item before to this one."""
        stall = np.full(count, -np.inf)
        for row, found in awaited.compute.items():
            stall[row] = line.end_ns[found].max()
        ready = np.maximum(np.maximum(places.free_ns[:-1], line.launch_ns + places.latency_ns), stall)
        self._gpu_ns = np.where(line.is_comm, 0.0, np.maximum(line.end_ns - ready, 0.0))
        self.places, self.awaited = places, awaited
        self._sums()

    def with_cpu(self, cpu_ns: Floats) -> _Items:
        """The same items with other CPU times."""
        other = _Items(self.places, self.awaited)
        other.cpu_ns = cpu_ns
        other._sums()
        return other

    def _sums(self) -> None:
        """Running sums, from which the segment of any items without a waiting call is read off."""
        line = self.places.timeline
        is_row = self.row >= 0
        rows = np.where(is_row, self.row, 0)
        runs = is_row & ~line.is_comm[rows] if len(line.is_comm) else is_row
        gpu = np.where(runs, self._gpu_ns[rows], 0.0) if len(line.is_comm) else np.zeros(0)
        self._cpu_until = np.concatenate([[0.0], np.cumsum(self.cpu_ns)])
        self._gpu_until = np.concatenate([[0.0], np.cumsum(gpu)])
        self._launch = np.where(runs, self._cpu_until[1:] - self._gpu_until[:-1], -np.inf)

    def segment(self, begin: int, end: int) -> Segment:
        """What these items do together."""
        found = NOTHING
        for item in (begin + np.flatnonzero(self.row[begin:end] < 0)).tolist():
            found = chain(chain(found, self._plain(begin, item, self.cpu_ns[item])), self.call(~int(self.row[item])))
            begin = item + 1
        return chain(found, self._plain(begin, end))

    def _plain(self, begin: int, end: int, more_cpu_ns: float = 0.0) -> Segment:
        """Items without a waiting call."""
        cpu = float(self._cpu_until[end] - self._cpu_until[begin])
        gpu = float(self._gpu_until[end] - self._gpu_until[begin])
        launch = float(self._launch[begin:end].max()) if end > begin else -np.inf
        later = launch - self._cpu_until[begin] + self._gpu_until[end] + self.places.latency_ns
        return gpu, float(later), -np.inf, cpu + more_cpu_ns

    def call(self, number: int) -> Segment:
        """A waiting call: it returns after the GPU is done, unless it was seen to return before."""
        places = self.places
        start, end = places.timeline.waits[number]
        row = int(places.wait_rows[number])
        free = float(places.free_ns[row])
        if end < free - TOLERANCE_NS:
            return 0.0, -np.inf, -np.inf, float(end - start)
        collectives = places.timeline.end_ns[self.awaited.cpu.get(number, [])].tolist()
        after = float(max(end - max(start, free, *collectives), 0.0))
        return 0.0, -np.inf, after, after

    def anchors(self, collective: Int64s) -> list[tuple[int, int]]:
        """The items where a segment ends, with their rows: steps, matched collectives, and what waits for one."""
        line = self.places.timeline
        wanted = collective != NONE
        wanted[:1] = True
        wanted[1:] |= np.diff(line.step) != 0
        wanted[list(self.awaited.compute)] = True
        calls = np.isin(~self.row, list(self.awaited.cpu))
        chosen = np.where(self.row >= 0, wanted[np.maximum(self.row, 0)], calls)
        return [(item, int(self.row[item])) for item in np.flatnonzero(chosen).tolist()]
