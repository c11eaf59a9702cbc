"""Assigns FLOPs and bytes to GPU time: the kernels that an op launched share its FLOPs and bytes.

A *piece* is the GPU time of one call of an op. Copies between host and device are pieces of their own, since a link
bounds them and not the memory; a memset or a copy within the device that an op needs along the way is part of the
op's time and not of its work. Time with no model keeps the reason.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
from msgspec import Struct, field, structs

from warpline.analyses.op_calls import OpCalls
from warpline.analyses.recorded_arguments import recorded_arguments
from warpline.analyses.roofline.floors import CallFloor, floor_of, math_of
from warpline.analyses.roofline.ops_from_elsewhere import ForeignOps
from warpline.api_names import GRAPH_LAUNCH
from warpline.hardware import Roof
from warpline.intervals import union
from warpline.trace.arrays import NONE, Bools, Int64s, combinations, containing
from warpline.trace.schema import Gpu
from warpline.trace.table import Names, filled
from warpline.trace.trace import Trace
from warpline.work import KernelLaunch, Work
from warpline.work.collective import work_of_record
from warpline.work.launches import work_of_launch

_LINKS = {"HtoD": "h2d", "DtoH": "d2h", "UnifiedHtoD": "h2d", "UnifiedDtoH": "d2h", "PtoP": "nvlink"}
_CLIMB = 6
"""Enclosing ops searched for a model; the deepest nesting seen around such a launch is four."""
NO_SIZE = "its size was not recorded"
NO_OP = "no op was recorded around its launch; its counters have them (warpline dive)"
IN_GRAPH = "replayed by a CUDA graph, which records no op around it"
NO_SHAPES_NSYS = "nsys records no shapes"


class Piece(Struct):
    """GPU time of one call, with its FLOPs and bytes or the reason why they are unknown."""

    op: str
    shapes: str
    dtypes: str
    rows: list[int]
    """Positions in `GpuWork.gpu`."""
    time_ns: int
    work: Work | None = None
    why: str = ""
    in_step: bool = False
    """Whether it ran within one of the trace's steps."""
    alike: Hashable = None
    """Equal for calls of one op with the same arguments and kernels; None for a unique piece."""


class PricedPiece(NamedTuple):
    """A piece with known FLOPs and bytes, and its minimum time."""

    piece: Piece
    work: Work
    math: tuple[str, str]
    """Type and unit of its main arithmetic."""
    floor: CallFloor


class _Row(NamedTuple):
    """One operation; texts are empty and numbers None where nothing is recorded."""

    kind: str
    name: str
    copy_kind: str
    source_memory: str
    target_memory: str
    in_graph: bool
    bytes: int | None
    blocks: int | None
    threads: int | None

    @property
    def launch(self) -> KernelLaunch:
        return KernelLaunch(self.name, self.blocks, self.threads)


class GpuWork(Struct, dict=True):
    """The GPU operations in view, and the calls that they are pieces of."""

    trace: Trace
    known_calls: OpCalls | None = None
    """The trace's ops, where they have been read already."""
    foreign: tuple[ForeignOps, ...] = ()
    """Ops of other places for rows whose work is unknown or estimated; the first that knows a row's work counts."""
    prices: dict[str | None, list[PricedPiece]] = field(default_factory=dict)
    """What `priced` found, by chip."""

    @cached_property
    def rows(self) -> Int64s:
        """Rows of the trace's `gpu` that start in the window. All else here goes by position among them."""
        window, begun = self.trace.window, self.trace.gpu.start_ns
        return np.flatnonzero((begun >= window.start_ns) & (begun < max(window.end_ns, window.start_ns + 1)))

    @cached_property
    def gpu(self) -> Gpu:
        """The operations."""
        return self.trace.gpu[self.rows]

    @cached_property
    def time_ns(self) -> Int64s:
        """How long each takes."""
        return self.gpu.end_ns - self.gpu.start_ns

    @property
    def busy_ns(self) -> int:
        """Time in which at least one runs, of all devices."""
        gpu = self.gpu
        on = [gpu.device == device for device in np.unique(gpu.device)]
        return sum(union(gpu.start_ns[those], gpu.end_ns[those]).total_ns() for those in on)

    @cached_property
    def is_kernel(self) -> Bools:
        """Which are kernels."""
        return self.gpu.kind.equal("kernel")

    @cached_property
    def blocks(self) -> Int64s:
        """Blocks of each kernel's grid; NONE where the grid was not recorded."""
        return _product(self.gpu.grid_x, self.gpu.grid_y, self.gpu.grid_z)

    @cached_property
    def threads(self) -> Int64s:
        """Threads of each kernel's blocks; NONE where the block was not recorded."""
        return _product(self.gpu.block_x, self.gpu.block_y, self.gpu.block_z)

    @cached_property
    def in_graph(self) -> Bools:
        """Which were replayed by a CUDA graph."""
        replays = np.append(self.trace.api.name.like(GRAPH_LAUNCH), False)
        return (filled(self.gpu.graph_id, 0) != 0) | replays[self.gpu.api_id]

    @cached_property
    def _texts(self) -> tuple[Names, ...]:
        gpu = self.gpu
        return gpu.kind, gpu.name, gpu.copy_kind, gpu.source_memory, gpu.target_memory

    def _row(self, position: int) -> _Row:
        kind, name, copy_kind, source, target = (column.text(position) or "" for column in self._texts)
        size, blocks, threads = (_number(column[position]) for column in (self.gpu.bytes, self.blocks, self.threads))
        return _Row(kind, name, copy_kind, source, target, bool(self.in_graph[position]), size, blocks, threads)

    @cached_property
    def _distinct(self) -> dict[int, _Row]:
        """The rows that `_alike` names."""
        return {first: self._row(first) for first in set(self._alike)}

    @cached_property
    def _alike(self) -> list[int]:
        """For each row, the first row that differs only in time and op."""
        numbers = (self.in_graph.astype(np.int64), self.gpu.bytes, self.blocks, self.threads)
        first, which = combinations(*(column.codes for column in self._texts), *numbers)
        return first[which].tolist()

    @cached_property
    def collectives(self) -> dict[int, Work]:
        """Work of NCCL's kernels by position, from what Kineto records with them (since torch 2.2)."""
        found = np.flatnonzero(self.is_kernel & self.gpu.name.like("nccl"))
        recorded = recorded_arguments(self.trace, self.gpu.args_offset[found], self.gpu.args_length[found])
        works = zip(found.tolist(), map(work_of_record, recorded), strict=True)
        return {position: work for position, work in works if work is not None}

    @cached_property
    def pieces(self) -> list[Piece]:
        """Pieces; every GPU row belongs to exactly one."""
        calls = self.known_calls or OpCalls(self.trace)
        pieces, with_op = self._without_op(), self._by_op()
        unmodelled: list[tuple[int, Piece]] = []
        modelled: set[int] = set()
        known: dict[Hashable, Piece] = {}
        alike, times, collectives = self._alike, self._times, self.collectives
        for (op, link), positions in with_op.items():
            key = (calls.alike(op), link, *[alike[position] for position in positions])
            first = known.get(key)
            if first is None:
                piece = self._of_op(calls, op, link, positions)
                if not any(position in collectives for position in positions):
                    piece.alike = key
                    known[key] = piece
            else:
                time_ns = sum([times[position] for position in positions])
                piece = Piece(
                    first.op, first.shapes, first.dtypes, positions, time_ns, first.work, first.why, alike=first.alike
                )
            pieces.append(piece)
            if piece.work is None:
                unmodelled.append((op, piece))
            elif not link:
                modelled.add(op)
        pieces = self._climb(calls, pieces, unmodelled, modelled) if unmodelled else pieces
        for number in range(len(self.foreign)):
            pieces = self._with_foreign(pieces, number)
        self._mark_steps(pieces)
        return pieces

    def priced(self, roof: Roof | None) -> list[PricedPiece]:
        """Each piece with known work, and its minimum time under this roof."""
        chip = roof.chip.name if roof else None
        if chip not in self.prices:
            self.prices[chip] = list(self._priced(roof))
        return self.prices[chip]

    def _priced(self, roof: Roof | None) -> Iterator[PricedPiece]:
        maths: dict[Hashable, tuple[str, str]] = {}
        floors: dict[tuple[Work, tuple[str, str]], CallFloor] = {}
        for piece in self.pieces:
            if piece.work is None:
                continue
            math = maths.get(piece.alike) if piece.alike is not None else None
            if math is None:
                math = maths[piece.alike] = math_of(piece.work, self.kernel_names(piece))
            key = (piece.work, math)
            if key not in floors:
                floors[key] = floor_of(piece.work, math, roof)
            yield PricedPiece(piece, piece.work, math, floors[key])

    def _with_foreign(self, pieces: list[Piece], number: int) -> list[Piece]:
        """The pieces, where rows with unknown or estimated work have that of their op elsewhere."""
        rows, foreign = self.rows.tolist(), self.foreign[number]
        doubtful = [piece for piece in pieces if piece.work is None or (piece.work.estimate and len(piece.rows) == 1)]
        calls: dict[int, list[int]] = defaultdict(list)
        for piece in doubtful:
            for position in piece.rows:
                if foreign.has_shapes[rows[position]]:
                    calls[int(foreign.call[rows[position]])].append(position)
        taken: set[int] = set()
        found: list[Piece] = []
        known: dict[Hashable, Piece] = {}
        has_op = (self.gpu.op_id != NONE).tolist()
        for positions in calls.values():
            op = int(foreign.ops[rows[positions[0]]])
            key = (foreign.calls.alike(op), *[self._alike[position] for position in positions])
            if key not in known:
                known[key] = self._of_op(foreign.calls, op, "", positions)
            first = known[key]
            if first.work is not None or not any(has_op[position] for position in positions):
                time_ns = sum(self._times[position] for position in positions)
                found.append(structs.replace(first, rows=positions, time_ns=time_ns, alike=(number, key)))
                taken.update(positions)
        for piece in doubtful:
            piece.rows = [position for position in piece.rows if position not in taken]
            piece.time_ns = sum(self._times[position] for position in piece.rows)
        return [piece for piece in pieces if piece.rows] + found

    @cached_property
    def _times(self) -> list[int]:
        return self.time_ns.tolist()

    def _without_op(self) -> list[Piece]:
        """A piece for each row with no op around it."""
        pieces: list[Piece] = []
        known: dict[int, Piece] = {}
        for position in np.flatnonzero(self.gpu.op_id == NONE).tolist():
            like = self._alike[position]
            first = known.get(like)
            if first is None or position in self.collectives:
                piece = known[like] = self._alone(position)
                piece.alike = None if position in self.collectives else like
            else:
                time_ns = self._times[position]
                piece = Piece(first.op, "", "", [position], time_ns, first.work, first.why, alike=first.alike)
            pieces.append(piece)
        return pieces

    def _by_op(self) -> dict[tuple[int, str], list[int]]:
        """Positions of the rows of each op; copies over a link apart."""
        links = self.gpu.copy_kind.renamed(lambda kind: _LINKS.get(kind, "")).texts
        links = np.where(self.gpu.kind.equal("memcpy"), links, "")
        result: dict[tuple[int, str], list[int]] = defaultdict(list)
        for position, key in enumerate(zip(self.gpu.op_id.tolist(), links.tolist(), strict=True)):
            if key[0] != NONE:
                result[key].append(position)
        return result

    def _mark_steps(self, pieces: list[Piece]) -> None:
        """Mark pieces that ran within a step."""
        steps = self.trace.all_steps
        begins = self.gpu.start_ns[np.array([piece.rows[0] for piece in pieces], np.int64)]
        inside = containing(steps.start_ns, steps.end_ns, begins) != NONE
        for piece, is_inside in zip(pieces, inside.tolist(), strict=True):
            piece.in_step = is_inside

    def kernel_names(self, piece: Piece) -> list[str]:
        """Names of the kernels of a piece."""
        return [self.gpu.name.text(position) or "" for position in piece.rows if self.is_kernel[position]]

    def _alone(self, position: int) -> Piece:
        """A row without an enclosing op: copies and fills record their bytes, some kernels their grid."""
        row = self._distinct[self._alike[position]]
        label = row.name if row.kind == "kernel" else row.kind if row.kind == "graph" else _copy_label(row)
        piece = Piece(label, "", "", [position], self._times[position])
        if row.kind == "kernel":
            piece.work = self.collectives.get(position) or work_of_launch(row.launch)
        else:
            piece.work = transfer(row.kind, row.copy_kind, row.bytes)
        if piece.work is None:
            nsys = self.trace.source == "nsys" and not len(self.trace.ops)
            is_copy = row.kind in {"memcpy", "memset"}
            piece.why = (
                NO_SIZE
                if is_copy
                else IN_GRAPH
                if row.in_graph or row.kind == "graph"
                else NO_SHAPES_NSYS
                if nsys
                else NO_OP
            )
        return piece

    def _of_op(self, calls: OpCalls, op: int, link: str, positions: list[int]) -> Piece:
        rows = [self._distinct[self._alike[position]] for position in positions]
        name, shapes, dtypes = calls.text(op)
        time_ns = sum([self._times[position] for position in positions])
        if link:
            label = f"{name} ({_copy_label(rows[0])})"
            work = _sum_of([transfer(row.kind, row.copy_kind, row.bytes) for row in rows])
            return Piece(label, shapes, dtypes, positions, time_ns, work, "" if work else "its bytes were not recorded")
        piece = Piece(name, shapes, dtypes, positions, time_ns)
        launches = tuple(sorted([row.launch for row in rows if row.kind == "kernel"], key=_by_name_and_size))
        collectives = [self.collectives[position] for position in positions if position in self.collectives]
        piece.work = _sum_of([*collectives]) or calls.work(op, launches)
        if piece.work is None and not launches:
            piece.work = _sum_of([transfer(row.kind, row.copy_kind, row.bytes) for row in rows])
        if piece.work is None and launches:
            piece.work = _sum_of([work_of_launch(launch) for launch in launches])
        if piece.work is None:
            piece.why = calls.why(op, launches)
        return piece

    def _climb(
        self, calls: OpCalls, pieces: list[Piece], unmodelled: list[tuple[int, Piece]], modelled: set[int]
    ) -> list[Piece]:
        """Assign time without a model to the nearest enclosing op with one, unless part of that op's work was
        already counted within it."""
        taken = {ancestor for op in modelled for ancestor in calls.ancestors(op)} | modelled
        merged: dict[int, Piece] = {}
        for op, piece in unmodelled:
            for ancestor in calls.ancestors(op)[:_CLIMB]:
                if ancestor in taken:
                    break
                known = merged.get(ancestor)
                launches = tuple(self._distinct[self._alike[position]].launch for position in piece.rows)
                work = known.work if known else calls.work(ancestor, launches)
                if work is None:
                    continue
                if known is None:
                    name, shapes, dtypes = calls.text(ancestor)
                    known = merged[ancestor] = Piece(name, shapes, dtypes, [], 0, work)
                known.rows.extend(piece.rows)
                known.time_ns += piece.time_ns
                piece.rows = []
                break
        return [piece for piece in pieces if piece.rows] + list(merged.values())


def _product(x: Int64s, y: Int64s, z: Int64s) -> Int64s:
    """The product of three sizes; NONE where one was not recorded."""
    return np.where((x == NONE) | (y == NONE) | (z == NONE), NONE, x * y * z)


def _number(value: np.int64) -> int | None:
    return None if value == NONE else int(value)


def _by_name_and_size(launch: KernelLaunch) -> tuple[str, int]:
    return launch.name, launch.blocks or 0


def transfer(kind: str, copy_kind: str | None, size: int | None) -> Work | None:
    """The bytes of a copy or a memset from its recorded size; a device-to-device copy reads and writes."""
    if size is None or size < 0:
        return None
    if kind == "memset":
        return Work("fill", (), 0, size)
    if kind != "memcpy":
        return None
    link = _LINKS.get(copy_kind or "", "")
    return Work("transfer", (), size, 0, link=link) if link else Work("copy", (), size, size)


def _copy_label(row: _Row) -> str:
    if row.kind != "memcpy":
        return row.kind
    ends = f", {row.source_memory} to {row.target_memory}" if row.source_memory and row.target_memory else ""
    return f"{row.copy_kind or 'copy'}{ends}"


def _sum_of(works: list[Work | None]) -> Work | None:
    """The sum of several works of one kind; None if any is unknown."""
    known = [work for work in works if work is not None]
    if not known or len(known) != len(works):
        return None
    first = known[0]
    return Work(
        first.model,
        tuple(part for work in known for part in work.flops),
        sum(work.read_bytes for work in known),
        sum(work.written_bytes for work in known),
        first.link,
        first.estimate,
    )
