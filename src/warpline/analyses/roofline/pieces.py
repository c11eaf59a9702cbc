"""Assigns FLOPs and bytes to GPU time: the kernels that an op launched share its FLOPs and bytes.

A *piece* is the GPU time of one call of an op. Copies between host and device are pieces of their own, since a link
bounds them and not the memory; a memset or a copy within the device that an op needs along the way is part of the
op's time and not of its work. Time with no model keeps the reason.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from msgspec import Struct, field

from warpline.analyses.op_calls import OpCalls
from warpline.analyses.roofline.ops_from_elsewhere import Borrowed
from warpline.api_names import GRAPH_LAUNCH
from warpline.errors import WarplineError
from warpline.trace.arrays import NONE, Bools, integers
from warpline.trace.names import names_in, rows_like
from warpline.trace.trace import Trace
from warpline.work import KernelLaunch, Work
from warpline.work.collective import work_of_record
from warpline.work.launches import work_of_launch

_LINKS = {"HtoD": "h2d", "DtoH": "d2h", "UnifiedHtoD": "h2d", "UnifiedDtoH": "d2h", "PtoP": "nvlink"}
LABELS = ("kind", "name", "copy_kind", "source_memory", "target_memory")
_CLIMB = 6
"""Enclosing ops searched for a model; the deepest nesting seen around such a launch is four."""
NO_OP = "no op was recorded around its launch"
IN_GRAPH = "replayed by a CUDA graph, which records no op around it"
NO_SHAPES_NSYS = "nsys records no shapes"


class Piece(Struct):
    """GPU time of one call, with its FLOPs and bytes or the reason why they are unknown."""

    op: str
    shapes: str
    dtypes: str
    rows: list[int]
    """Positions in `Gathered.gpu`."""
    time_ns: int
    work: Work | None = None
    why: str = ""
    in_step: bool = False
    """Whether it ran within one of the trace's steps."""
    alike: Hashable = None
    """Equal for calls of one op with the same arguments and kernels; None for a unique piece."""


class _Row(NamedTuple):
    """One row of `gpu`; texts are empty where nothing is recorded."""

    kind: str
    name: str
    copy_kind: str
    source_memory: str
    target_memory: str
    time_ns: int
    op: int | None
    graph: bool
    bytes: int | None
    blocks: int | None
    threads: int | None

    @property
    def launch(self) -> KernelLaunch:
        return KernelLaunch(self.name, self.blocks, self.threads)


class Gathered(Struct, dict=True):
    """The selected GPU rows and their pieces."""

    trace: Trace
    known_calls: OpCalls | None = None
    """The trace's ops, where they have been read already."""
    borrowed: tuple[Borrowed, ...] = ()
    """Ops of other places for rows whose work is unknown or estimated; the first that knows a row's work counts."""
    prices: dict[str | None, list[Any]] = field(default_factory=dict)
    """What `roofline.priced` found, by chip."""
    row_works: dict[str | None, Any] = field(default_factory=dict)
    """What `row_work.row_work` found, by chip."""

    @cached_property
    def gpu(self) -> pl.DataFrame:
        """Rows that start in the window."""
        window, begun = self.trace.window, self.trace.gpu.start_ns
        inside = (begun >= window.start_ns) & (begun < max(window.end_ns, window.start_ns + 1))
        gpu = self.trace.stored("gpu").with_row_index("row")
        return gpu if inside.all() else gpu[np.flatnonzero(inside)]

    @cached_property
    def numbers(self) -> pl.DataFrame:
        """What is counted of the same rows: `time_ns`, `op`, `graph`, `bytes`, `blocks` and `threads`."""
        product = pl.col("grid_x").cast(pl.Int64) * pl.col("grid_y") * pl.col("grid_z")
        threads = pl.col("block_x").cast(pl.Int64) * pl.col("block_y") * pl.col("block_z")
        replays = np.append(self.trace.api.name.like(GRAPH_LAUNCH), False)
        return self.gpu.select(
            "bytes",
            op=pl.col("op_id"),
            time_ns=pl.col("end_ns") - pl.col("start_ns"),
            graph=(pl.col("graph_id").fill_null(0) != 0) | pl.Series(replays[integers(self.gpu["api_id"])]),
            blocks=product,
            threads=threads,
        )

    @cached_property
    def _columns(self) -> list[list[Any]]:
        labels = [names_in(self.gpu, name).texts.tolist() for name in LABELS]
        return labels + [self.numbers[name].to_list() for name in _Row._fields[len(LABELS) :]]

    @cached_property
    def rows(self) -> list[_Row]:
        """The same, as plain objects."""
        return [_Row(*values) for values in zip(*self._columns, strict=True)]

    def _row(self, position: int) -> _Row:
        return _Row(*(column[position] for column in self._columns))

    @cached_property
    def _alike(self) -> list[int]:
        """For each row, the first row that differs only in time and op."""
        features = pl.DataFrame({name: names_in(self.gpu, name).which for name in LABELS}).hstack(
            self.numbers[["graph", "bytes", "blocks", "threads"]]
        )
        first = pl.col("position").first().over(features.columns)
        return features.with_row_index("position").select(first).to_series().to_list()

    @cached_property
    def collectives(self) -> dict[int, Work]:
        """Work of NCCL's kernels by position, from what Kineto records with them (since torch 2.2)."""
        if self.trace.source != "kineto":
            return {}
        found = np.flatnonzero(self.is_kernel & rows_like(self.gpu, "nccl")).tolist()
        if not found:
            return {}
        from warpline.sources.kineto.arguments import read_arguments  # noqa: PLC0415 - few traces have collectives

        chosen = self.gpu[found].select(pl.col("args_offset").fill_null(-1), pl.col("args_length").fill_null(0))
        try:
            recorded = read_arguments(self.trace.file, chosen["args_offset"].to_list(), chosen["args_length"].to_list())
        except WarplineError:
            # The file of a cached trace may be deleted; its collectives then have no model.
            return {}
        works = {position: work_of_record(arguments) for position, arguments in zip(found, recorded, strict=True)}
        return {position: work for position, work in works.items() if work is not None}

    @cached_property
    def is_kernel(self) -> Bools:
        """Which rows are kernels."""
        return rows_like(self.gpu, "^kernel$", "kind")

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
        for borrowed in self.borrowed:
            pieces = self._with_borrowed(pieces, borrowed)
        self._mark_steps(pieces)
        return pieces

    def _with_borrowed(self, pieces: list[Piece], borrowed: Borrowed) -> list[Piece]:
        """The pieces, where rows with unknown or estimated work have that of their borrowed op."""
        rows = self.gpu["row"].to_list()
        doubtful = [piece for piece in pieces if piece.work is None or (piece.work.estimate and len(piece.rows) == 1)]
        calls: dict[int, list[int]] = defaultdict(list)
        for piece in doubtful:
            for position in piece.rows:
                if borrowed.ops[rows[position]] != NONE:
                    calls[int(borrowed.call[rows[position]])].append(position)
        taken: set[int] = set()
        found: list[Piece] = []
        known: dict[Hashable, Work | None] = {}
        for positions in calls.values():
            op = int(borrowed.ops[rows[positions[0]]])
            key = (borrowed.calls.alike(op), *[self._alike[position] for position in positions])
            if key not in known:
                known[key] = self._of_op(borrowed.calls, op, "", positions).work
            work = known[key]
            if work is not None:
                name, shapes, dtypes = borrowed.calls.text(op)
                time_ns = sum(self._times[position] for position in positions)
                found.append(Piece(name, shapes, dtypes, positions, time_ns, work, alike=(id(borrowed), key)))
                taken.update(positions)
        for piece in doubtful:
            piece.rows = [position for position in piece.rows if position not in taken]
            piece.time_ns = sum(self._times[position] for position in piece.rows)
        return [piece for piece in pieces if piece.rows] + found

    @cached_property
    def _times(self) -> list[int]:
        return self.numbers["time_ns"].to_list()

    def _without_op(self) -> list[Piece]:
        """A piece for each row with no op around it."""
        pieces: list[Piece] = []
        known: dict[int, Piece] = {}
        for position in np.flatnonzero(integers(self.gpu["op_id"]) == NONE).tolist():
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
        result: dict[tuple[int, str], list[int]] = defaultdict(list)
        links = {kind: _LINKS.get(kind, "") for kind in set(self._columns[LABELS.index("copy_kind")])}
        kinds, copies = (self._columns[LABELS.index(name)] for name in ("kind", "copy_kind"))
        for position, op in enumerate(self.numbers["op"].to_list()):
            if op is not None:
                result[op, links[copies[position]] if kinds[position] == "memcpy" else ""].append(position)
        return result

    def _mark_steps(self, pieces: list[Piece]) -> None:
        """Mark pieces that ran within a step."""
        steps, first = self.trace.stored("steps"), [piece.rows[0] for piece in pieces]
        starts, ends = integers(steps["start_ns"]), np.append(integers(steps["end_ns"]), 0)
        begins = integers(self.gpu["start_ns"])[first] if first else np.empty(0, np.int64)
        step = np.searchsorted(starts, begins, side="right") - 1
        for piece, inside in zip(pieces, ((step >= 0) & (begins < ends[step])).tolist(), strict=True):
            piece.in_step = inside

    def kernel_names(self, piece: Piece) -> Iterator[str]:
        """Names of the kernels of a piece."""
        kinds, names = self._columns[:2]
        return (names[position] for position in piece.rows if kinds[position] == "kernel")

    def _alone(self, position: int) -> Piece:
        """A row without an enclosing op: copies and fills record their bytes, some kernels their grid."""
        row = self._row(position)
        label = row.name if row.kind == "kernel" else row.kind if row.kind == "graph" else _copy_label(row)
        piece = Piece(label, "", "", [position], row.time_ns)
        if row.kind == "kernel":
            piece.work = self.collectives.get(position) or work_of_launch(row.launch)
        else:
            piece.work = transfer(row.kind, row.copy_kind, row.bytes)
        if piece.work is None:
            nsys = self.trace.source == "nsys" and not len(self.trace.ops)
            piece.why = IN_GRAPH if row.graph or row.kind == "graph" else NO_SHAPES_NSYS if nsys else NO_OP
        return piece

    def _of_op(self, calls: OpCalls, op: int, link: str, positions: list[int]) -> Piece:
        rows = [self._row(position) for position in positions]
        name, shapes, dtypes = calls.text(op)
        time_ns = sum(row.time_ns for row in rows)
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
            piece.why = IN_GRAPH if any(row.graph for row in rows) else calls.why(op, launches)
        return piece

    def _climb(
        self, calls: OpCalls, pieces: list[Piece], unmodelled: list[tuple[int, Piece]], modelled: set[int]
    ) -> list[Piece]:
        """Assign time without a model to the nearest enclosing op with one, unless part of that op's work was
        already counted within it."""
        taken = {ancestor for op in modelled for ancestor in calls.ancestors(op)} | modelled
        merged: dict[int, Piece] = {}
        gone: set[int] = set()
        for op, piece in unmodelled:
            for ancestor in calls.ancestors(op)[:_CLIMB]:
                if ancestor in taken:
                    break
                known = merged.get(ancestor)
                work = known.work if known else calls.work(ancestor, tuple(self._row(i).launch for i in piece.rows))
                if work is None:
                    continue
                if known is None:
                    name, shapes, dtypes = calls.text(ancestor)
                    known = merged[ancestor] = Piece(name, shapes, dtypes, [], 0, work)
                known.rows.extend(piece.rows)
                known.time_ns += piece.time_ns
                gone.add(id(piece))
                break
        return [piece for piece in pieces if id(piece) not in gone] + list(merged.values())


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
