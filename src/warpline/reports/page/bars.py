"""The bars of the page's timeline, kind by kind: how each is named and explained, and what it belongs to."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from warpline import api_names
from warpline.analyses.idle.gaps import CAUSES, Gaps
from warpline.analyses.op_calls import on_one_line
from warpline.analyses.roofline.pieces import GpuWork
from warpline.analyses.roofline.table import kernel_floors
from warpline.errors import CannotAnswer
from warpline.library_names import MODULE_FRAME
from warpline.reports.page.contract import EventKind, Inputs, Launch
from warpline.reports.page.names import NameTable
from warpline.reports.page.rows import Pack
from warpline.timeline.tracks import BarTrack, call_tracks, idle_track, range_tracks, stream_tracks, sync_tracks
from warpline.trace.arrays import NONE, Int64s, combinations
from warpline.trace.table import Names

BOUNDS = ("compute", "memory", "latency")
MOST_FLOORS = 200_000
"""Operations up to which the roofline is computed: about 10 µs each."""
_API_KINDS: tuple[tuple[re.Pattern[str], EventKind], ...] = (
    (re.compile(api_names.LAUNCH), "launch"),
    (re.compile(api_names.HOST_WAIT), "wait"),
    (re.compile(f"{api_names.COPY}|{api_names.MEMSET}"), "api_copy"),
    (re.compile(f"{api_names.ALLOCATION}|{api_names.FREE}|{api_names.EMPTY_CACHE_FREE}"), "allocate"),
)


class Bars:
    """Adds the tracks of a trace to the page. `places` are where rows of ops, API calls and GPU activity lie on it, and
    a last element for none."""

    def __init__(self, work: GpuWork, inside: Mapping[int, int]) -> None:
        self._trace, self._work, self._inside = work.trace, work, inside
        self.pack, self.names = Pack(), NameTable()
        self.launches: list[Launch] = []
        self.inputs: list[Inputs] = []
        self._places: dict[str, Int64s] = {}

    def add_ops(self) -> None:
        """Ops, each linked with the forward op that it differentiates."""
        ops = self._trace.ops
        first = self.pack.count
        names = self._numbers(ops.name, lambda name: self.names.number(name, "op"))
        inputs = _first_seen((ops.shapes.codes, ops.dtypes.codes, ops.module.codes), self._input)
        self._places["ops"] = places = self._add(list(call_tracks(self._trace, "ops")), len(ops), names, inputs)
        differentiates = np.flatnonzero(ops.forward_op != NONE)
        self.pack.relink(places[differentiates] - first, places[ops.forward_op[differentiates]])

    def add_api(self) -> None:
        """API calls, each linked with the op around it."""
        api = self._trace.api
        names = self._numbers(api.name, lambda name: self.names.number(name, _api_kind(name)))
        tracks = list(call_tracks(self._trace, "api"))
        self._places["api"] = self._add(tracks, len(api), names, links=self._places["ops"][api.op_id])

    def add_ranges(self) -> None:
        """Ranges of the threads."""
        names = self._numbers(self._trace.ranges.name, lambda name: self.names.number(name, "range"))
        tracks = [track for track in range_tracks(self._trace) if track.thread is not None]
        self._add(tracks, len(names), names)

    def add_python(self) -> None:
        """Python frames."""
        python = self._trace.python
        names = self._numbers(
            python.name, lambda name: self.names.number(name, "module" if name.startswith(MODULE_FRAME) else "python")
        )
        self._add(list(call_tracks(self._trace, "python")), len(python), names)

    def add_streams(self) -> None:
        """GPU activity, each operation linked with the call that launched it, else with its op."""
        gpu = self._trace.gpu
        spelled = gpu.kind, gpu.name, gpu.short_name
        names = _first_seen(
            tuple(column.codes for column in spelled),
            lambda row: self.names.gpu(*(column.text(row) for column in spelled)),
        )
        call, op = self._places["api"][gpu.api_id], self._places["ops"][gpu.op_id]
        links = np.where(call != NONE, call, op)
        tracks = list(stream_tracks(self._trace))
        self._places["gpu"] = self._add(tracks, len(gpu), names, self._launch_numbers(), links, is_rounded=False)

    def add_syncs(self) -> None:
        """What the devices recorded of synchronisation, each linked with the call that waited."""
        syncs = self._trace.syncs
        tracks = list(sync_tracks(self._trace))
        if tracks:
            names = self._numbers(syncs.kind, lambda kind: self.names.number(kind.replace("_", " "), "sync"))
            links = self._places["api"][syncs.api_id]
            self._add(tracks, len(syncs), names, links=links, is_rounded=False)

    def add_idle(self, gaps: Sequence[Gaps]) -> None:
        """Idle time by cause, each part linked with the operation that ended its gap."""
        numbers = [self.names.number(f"idle: {words}", "idle", words, cause) for cause, words in cause_words().items()]
        for one in gaps:
            spans = one.spans
            ended_by = self._places["gpu"][one.ended_by[spans.gaps]]
            names = np.array(numbers)[spans.causes]
            self._add([idle_track(one)], len(names), names, links=ended_by, is_rounded=False)

    def _add(
        self,
        tracks: Sequence[BarTrack],
        count: int,
        names: Int64s,
        explained: Int64s | None = None,
        links: Int64s | None = None,
        is_rounded: bool = True,
    ) -> Int64s:
        """Add the tracks of one table of so many rows, with what the page knows of each row; where each row lies."""
        rows = np.concatenate([np.zeros(0, np.int64), *(track.rows for track in tracks)])
        arguments = np.zeros(len(rows), np.int64) if explained is None else explained[rows]
        linked = np.full(len(rows), NONE) if links is None else links[rows]
        places = np.full(count + 1, NONE)
        places[rows] = self.pack.add(tracks, names[rows], arguments, linked, is_rounded)
        return places

    def _numbers(self, column: Names, number: Callable[[str], int]) -> Int64s:
        """The number of each row's name."""
        return _first_seen((column.codes,), lambda row: number(column.text(row) or ""))

    def _input(self, row: int) -> int:
        """The number of an op's inputs, from 1 on; 0 where nothing was recorded."""
        ops = self._trace.ops
        shapes, dtypes, module = (column.text(row) or "" for column in (ops.shapes, ops.dtypes, ops.module))
        if not (shapes or dtypes or module):
            return 0
        self.inputs.append(Inputs(on_one_line(shapes), on_one_line(dtypes), module))
        return len(self.inputs)

    def _launch_numbers(self) -> Int64s:
        """The number of each operation's launch, from 1 on; 0 where nothing is known of it."""
        gpu = self._trace.gpu
        sizes = gpu.grid_x, gpu.grid_y, gpu.grid_z, gpu.block_x, gpu.block_y, gpu.block_z
        others = gpu.registers, gpu.shared_bytes, gpu.bytes
        floors, bounds = self._floors()
        inside = np.full(len(gpu), NONE)
        inside[list(self._inside)] = list(self._inside.values())
        memory = gpu.source_memory, gpu.target_memory
        columns = (*sizes, *others, *(column.codes for column in memory), floors, bounds, inside)

        def number(row: int) -> int:
            if all(column[row] == NONE for column in columns):
                return 0
            known = [None if column[row] == NONE else int(column[row]) for column in (*sizes, *others, floors, inside)]
            x, y, z, block_x, block_y, block_z, registers, shared, moved, floor, kernel = known
            self.launches.append(
                Launch(
                    grid=_three(x, y, z),
                    block=_three(block_x, block_y, block_z),
                    registers=registers,
                    shared_bytes=shared,
                    moved_bytes=moved,
                    source=memory[0].text(row),
                    target=memory[1].text(row),
                    floor_ns=floor,
                    bound=None if bounds[row] == NONE else BOUNDS[bounds[row]],
                    inside=kernel,
                )
            )
            return len(self.launches)

        return _first_seen(columns, number)

    def _floors(self) -> tuple[Int64s, Int64s]:
        """The time that the roofline allows each operation, to two digits so that equal launches stay equal, and what
        bounds it."""
        count = len(self._trace.gpu)
        times, bounds = np.full(count, NONE), np.full(count, NONE)
        try:
            floors = kernel_floors(self._trace, known_work=self._work) if count <= MOST_FLOORS else {}
        except CannotAnswer:
            floors = {}
        for row, (floor_ns, bound) in floors.items():
            times[row], bounds[row] = rounded(floor_ns), BOUNDS.index(bound)
        return times, bounds


def rounded(floor_ns: float) -> int:
    """The time to two digits."""
    return int(float(f"{floor_ns:.1e}"))


def cause_words() -> dict[str, str]:
    """Each cause of idle time, in words."""
    return {cause: cause.replace("_", " ") for cause in CAUSES}


def _api_kind(name: str) -> EventKind:
    return next((kind for pattern, kind in _API_KINDS if pattern.search(name)), "api")


def _three(x: int | None, y: int | None, z: int | None) -> tuple[int, int, int] | None:
    return None if x is None else (x, 1 if y is None else y, 1 if z is None else z)


def _first_seen(columns: tuple[Int64s, ...], number: Callable[[int], int]) -> Int64s:
    """A number for each row, asked once for each combination of values, in the order in which they first occur."""
    rows, which = combinations(*columns)
    numbers = np.zeros(len(rows), np.int64)
    for place in np.argsort(rows).tolist():
        numbers[place] = number(int(rows[place]))
    return numbers[which]
