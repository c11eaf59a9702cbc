"""A rank as a short program: between two points where it meets other ranks, its kernels and launches are one formula.

The state is when the GPU and the CPU are free. A launch, a kernel and a call that waits for the GPU each map it by
additions and maxima, and so does any sequence of them (max-plus algebra; Baccelli et al., Synchronization and
Linearity, 1992): ``gpu = max(gpu + a, cpu + b)``, ``cpu = max(gpu + c, cpu + d)``. Four numbers a segment replay
exactly what thousands of kernels would.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import cached_property

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from warpline.ranks.dependencies import Places, Role, Wait
from warpline.trace.arrays import NONE, Bools, Floats, Int64s

TOLERANCE_NS = 2_000.0
"""Moments closer than this may be one: older files round both starts and lengths to microseconds."""
AT_ONCE = 4096
"""Items whose median over all ranks is found at once."""
Singles = npt.NDArray[np.float32]


class InstructionKind(IntEnum):
    """Kinds of instructions."""

    SEGMENT = 0
    JOIN = 1
    AWAIT_GPU = 2
    AWAIT_CPU = 3
    STEP = 4


class Program(Struct, frozen=True):
    """What one rank does: instructions in order, and their operands, each kind in the order of its instructions."""

    rank: int
    instructions: bytes
    """An `InstructionKind` each."""
    segments: Floats
    """A row of a, b, c, d for each segment."""
    collectives: Int64s
    """For each instruction that joins or awaits a collective, its number."""
    lag_ns: Floats
    """For each JOIN, how much later the collective starts than launch, stream and compute allow."""
    stream: Int64s
    """Its stream."""
    after_compute: Bools
    """Whether it starts after the compute launched before it."""
    start_ns: float
    """When the rank starts its first step."""
    latency_ns: float


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
    """All ranks of a job as they were recorded, from which programs are made, one rank at a time."""

    def __init__(
        self,
        all_places: Iterable[Places],
        waits: Mapping[Role, Sequence[Wait]],
        numbers: Mapping[int, Int64s],
    ) -> None:
        """`numbers` says for each rank which collective of the job each of its collectives is, or NONE."""
        self._all_places, self._waits, self._numbers = all_places, waits, numbers

    def _items(self) -> Iterator[_Items]:
        for places in self._all_places:
            collective = np.full(len(places.place), NONE, np.int64)
            collective[places.comm] = self._numbers[places.rank]
            yield _Items(places, _awaited(places, self._waits[places.role], collective), collective)

    def programs(self) -> list[Program]:
        """The program of each rank."""
        return [_program(items) for items in self._items()]

    @cached_property
    def _cpu_ns(self) -> _CpuTimes:
        """The CPU time before each item of each rank, and its median over the ranks that do the same."""
        own: dict[int, Singles] = {}
        alike: dict[tuple[Role, bytes], list[int]] = defaultdict(list)
        start_ns = []
        for items in self._items():
            rank = items.places.rank
            own[rank] = items.cpu_ns.astype(np.float32)
            alike[items.places.role, (items.row < 0).tobytes()].append(rank)
            start_ns.append(float(items.places.timeline.steps[0, 0]))
        typical: dict[int, Singles] = {}
        for same in alike.values():
            parts = (np.arange(first, first + AT_ONCE) for first in range(0, len(own[same[0]]), AT_ONCE))
            medians = [np.median([own[rank][part[0] : part[-1] + 1] for rank in same], axis=0) for part in parts]
            typical |= dict.fromkeys(same, np.concatenate(medians) if medians else np.zeros(0, np.float32))
        return _CpuTimes(own, typical, float(np.median(start_ns)))

    def stalls_ns(self, stall_ns: float) -> dict[int, float]:
        """The time of each rank's host stalls: CPU time between two launches that is longer by so much than the median
        of the ranks at that place."""
        return {rank: float(self._stalls(rank, stall_ns).sum()) for rank in self._cpu_ns.own}

    def calm_programs(self, stall_ns: float) -> list[Program]:
        """The programs without these stalls, and without those before the first step."""
        typical_ns = self._cpu_ns.start_ns
        calm = []
        for items in self._items():
            items.set_cpu(np.maximum(items.cpu_ns - self._stalls(items.places.rank, stall_ns), 0.0))
            program = _program(items)
            # A rank that starts its first step so much later than the others stalled before the recording.
            is_late = program.start_ns - typical_ns > stall_ns
            calm.append(replace(program, start_ns=typical_ns) if is_late else program)
        return calm

    def _stalls(self, rank: int, stall_ns: float) -> Floats:
        longer = self._cpu_ns.own[rank].astype(np.float64) - self._cpu_ns.typical[rank]
        return np.where(longer > stall_ns, longer, 0.0)


class _CpuTimes(Struct, frozen=True):
    """The CPU time before each item, by rank; and when ranks start their first step, in the median."""

    own: Mapping[int, Singles]
    typical: Mapping[int, Singles]
    start_ns: float


def _program(items: _Items) -> Program:
    draft = _Draft(items)
    for item, row in items.anchors():
        if row < 0:
            draft.wait_on_cpu(item, ~row)
        else:
            draft.launch(item, row)
    return draft.program()


class _Draft:
    """A program in the making: each instruction closes the segment before it."""

    def __init__(self, items: _Items) -> None:
        self._items, self._steps = items, items.places.timeline.step.tolist()
        self._number_of = items.collective.tolist()
        self._instructions = bytearray()
        self._begin = 0
        """The first item of the segment that is open."""
        self._bounds: list[tuple[int, int]] = []
        self._others: dict[int, Segment] = {}
        """Segments, by number, that are not the product of their items."""
        self._numbers: list[int] = []
        self._joins: list[int] = []

    def wait_on_cpu(self, item: int, call: int) -> None:
        """A call of the CPU that waits for collectives, and returns after them."""
        items = self._items
        before = chain(items.segment(self._begin, item), (0.0, -np.inf, -np.inf, float(items.cpu_ns[item])))
        self._others[len(self._bounds)] = before
        self._close(item)
        self._begin = item + 1
        for row in items.awaited.cpu[call]:
            self._meet(InstructionKind.AWAIT_CPU, row)
        self._others[len(self._bounds)] = items.call(call)
        self._close(self._begin)

    def launch(self, item: int, row: int) -> None:
        """An operation that begins a step, awaits collectives, or is one."""
        if row == 0 or self._steps[row] != self._steps[row - 1]:
            if row:
                self._close(item)
            self._instructions.append(InstructionKind.STEP)
        for awaited in self._items.awaited.compute.get(row, ()):
            self._close(item)
            self._meet(InstructionKind.AWAIT_GPU, awaited)
        if self._number_of[row] != NONE:
            self._close(item + 1)
            self._meet(InstructionKind.JOIN, row)
            self._joins.append(row)

    def _close(self, end: int) -> None:
        self._instructions.append(InstructionKind.SEGMENT)
        self._bounds.append((self._begin, end))
        self._begin = end

    def _meet(self, kind: InstructionKind, row: int) -> None:
        self._instructions.append(kind)
        self._numbers.append(self._number_of[row])

    def program(self) -> Program:
        """The whole, once all items are in it."""
        items, places = self._items, self._items.places
        self._close(len(items.cpu_ns))
        line, rows = places.timeline, np.array(self._joins, np.int64)
        after_compute = line.start_ns[rows] >= places.free_ns[rows] - TOLERANCE_NS
        segments = items.segments(np.array(self._bounds))
        for number, segment in self._others.items():
            segments[number] = segment
        return Program(
            line.rank,
            bytes(self._instructions),
            segments,
            np.array(self._numbers, np.int64),
            _lags(places, rows, after_compute),
            line.stream[rows],
            after_compute,
            float(line.steps[0, 0]),
            places.latency_ns,
        )


def _lags(places: Places, rows: Int64s, after_compute: Bools) -> Floats:
    """How much later each collective starts than its launch, its stream and the compute before it allow."""
    line = places.timeline
    ready = line.launch_ns[rows] + places.latency_ns
    for stream in np.unique(line.stream[rows]):
        own = np.flatnonzero(line.stream[rows] == stream)
        ready[own[1:]] = np.maximum(ready[own[1:]], line.end_ns[rows[own[:-1]]])
    ready = np.where(after_compute, np.maximum(ready, places.free_ns[rows]), ready)
    return np.maximum(line.start_ns[rows] - ready, 0.0)


class _Awaited(Struct, frozen=True):
    """The collectives, by row, that each operation and each waiting call of the CPU waits for."""

    compute: dict[int, list[int]]
    cpu: dict[int, list[int]]


def _awaited(places: Places, waits: Sequence[Wait], collective: Int64s) -> _Awaited:
    compute: dict[int, list[int]] = defaultdict(list)
    cpu: dict[int, list[int]] = defaultdict(list)
    if not waits:
        return _Awaited(compute, cpu)
    targets = places.collectives_of(waits)
    targets = np.where(np.append(collective, NONE)[targets] == NONE, NONE, targets)
    rows = places.rows_of(waits)
    is_compute = np.array([wait.who == "compute" for wait in waits])
    chosen = is_compute & (targets != NONE) & (targets < rows)
    for row, at in zip(rows[chosen].tolist(), targets[chosen].tolist(), strict=True):
        compute[row].append(at)
    for step, number in np.argwhere(~is_compute & (targets != NONE)).tolist():
        wait = waits[number]
        call = places.calls.get((step, wait.after, wait.place))
        if call is not None:
            cpu[call].append(int(targets[step, number]))
    return _Awaited(dict(compute), dict(cpu))


class _Items:
    """Operations and waiting calls in the order of the CPU, with the CPU time before each and what it does then."""

    def __init__(self, places: Places, awaited: _Awaited, collective: Int64s) -> None:
        line = places.timeline
        count, calls = len(line.launch_ns), len(line.waits)
        at = np.concatenate([line.launch_ns, line.waits[:, 0]])
        order = np.lexsort((np.arange(count + calls) < count, at))
        self.row = np.where(order < count, order, ~(order - count))
        """Row of each operation; ~number of each waiting call."""
        leave = np.concatenate([line.launch_ns, line.waits[:, 1]])[order]
        at = at[order]
        left = np.concatenate([[line.steps[0, 0]], np.maximum.accumulate(leave)[:-1]])
        stall = np.full(count, -np.inf)
        for row, found in awaited.compute.items():
            stall[row] = max(line.end_ns[one] for one in found)
        ready = np.maximum(np.maximum(places.free_ns[:-1], line.launch_ns + places.latency_ns), stall)
        self._gpu_ns = np.where(line.is_comm, 0.0, np.maximum(line.end_ns - ready, 0.0))
        self.places, self.awaited, self.collective = places, awaited, collective
        self._calls = np.flatnonzero(self.row < 0)
        self.set_cpu(np.maximum(at - left, 0.0))

    def set_cpu(self, cpu_ns: Floats) -> None:
        """Give the items these CPU times: from the item before to this one."""
        self.cpu_ns = cpu_ns
        # Running sums, from which the segment of any items without a waiting call is read off.
        line = self.places.timeline
        is_row = self.row >= 0
        rows = np.where(is_row, self.row, 0)
        runs = is_row & ~line.is_comm[rows]
        gpu = np.where(runs, self._gpu_ns[rows], 0.0)
        self._cpu_until = np.concatenate([[0.0], np.cumsum(self.cpu_ns)])
        self._gpu_until = np.concatenate([[0.0], np.cumsum(gpu)])
        self._launch = np.append(np.where(runs, self._cpu_until[1:] - self._gpu_until[:-1], -np.inf), -np.inf)

    def segments(self, bounds: Int64s) -> Floats:
        """What the items between each two of these bounds do together. Bounds ascend; items between the end of one and
        the start of the next are waiting calls."""
        begins, ends = bounds.T
        cpu = self._cpu_until[ends] - self._cpu_until[begins]
        gpu = self._gpu_until[ends] - self._gpu_until[begins]
        filled = ends > begins
        launch = np.full(len(bounds), -np.inf)
        if filled.any():
            launch[filled] = np.maximum.reduceat(self._launch, begins[filled])
        later = launch - self._cpu_until[begins] + self._gpu_until[ends] + self.places.latency_ns
        found = np.stack([gpu, later, np.full(len(bounds), -np.inf), cpu], axis=1)
        calls = np.searchsorted(self._calls, bounds)
        for number in np.flatnonzero(calls[:, 0] < calls[:, 1]).tolist():
            found[number] = self.segment(*bounds[number].tolist())
        return found

    def segment(self, begin: int, end: int) -> Segment:
        """What these items do together."""
        found = NOTHING
        first, beyond = np.searchsorted(self._calls, (begin, end)).tolist()
        for item in self._calls[first:beyond].tolist():
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

    def anchors(self) -> list[tuple[int, int]]:
        """The items where a segment ends, with their rows: steps, matched collectives, and what waits for one."""
        wanted = self.collective != NONE
        wanted[self.places.step_rows[:-1]] = True
        wanted[list(self.awaited.compute)] = True
        calls = np.isin(~self.row, list(self.awaited.cpu))
        items = np.flatnonzero(np.where(self.row >= 0, wanted[np.maximum(self.row, 0)], calls))
        return list(zip(items.tolist(), self.row[items].tolist(), strict=True))
