"""Calls of a trace's ops for the work models; each distinct call is evaluated once."""

from __future__ import annotations

from functools import lru_cache

import msgspec
import numpy as np

from warpline.kernels import identify
from warpline.trace.arrays import NONE, Int64s, combinations
from warpline.trace.table import filled
from warpline.trace.trace import Trace
from warpline.work import KernelLaunch, OpCall, Work, call_from_kineto, why_no_work, work_of

MOST_ANCESTORS = 64
"""Ops around an op that are looked at: a damaged file may nest thousands."""


class OpCalls:
    """Ops by row, and the FLOPs and bytes of each distinct call, computed once."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        ops = trace.ops
        recorded = (ops.name, ops.shapes, ops.dtypes, ops.strides, ops.concrete)
        self._columns = [column.texts.tolist() for column in recorded]
        # No text counts as an empty one.
        empty = [column.words.index("") if "" in column.words else NONE for column in recorded]
        codes = [filled(column.codes, missing) for column, missing in zip(recorded, empty, strict=True)]
        self._numbers = combinations(*codes)[1].tolist()
        self._parents = ops.parent.tolist()
        self._known: dict[object, Work | None] = {}
        self._alone: dict[tuple[str, ...], OpCall] = {}

    def text(self, op: int) -> tuple[str, str, str]:
        """Name, shapes and types as recorded."""
        names, shapes, dtypes, _, _ = self._columns
        return names[op], on_one_line(shapes[op]), on_one_line(dtypes[op])

    def number(self, op: int) -> int:
        """The same for ops with the same name and arguments."""
        return self._numbers[op]

    def numbers_of(self, ops: Int64s) -> Int64s:
        """The same for several ops; NONE for NONE."""
        return np.append(np.array(self._numbers, np.int64), NONE)[ops]

    def alike(self, op: int) -> tuple[int, int]:
        """The same for ops with the same name and arguments that are called by such ops."""
        parent = self._parents[op]
        return self._numbers[op], NONE if parent == NONE else self._numbers[parent]

    def ancestors(self, op: int) -> list[int]:
        """Ops around it, the nearest first."""
        found: list[int] = []
        parent = self._parents[op]
        while parent != NONE and len(found) < MOST_ANCESTORS:
            found.append(parent)
            parent = self._parents[parent]
        return found

    def work(self, op: int, launches: tuple[KernelLaunch, ...]) -> Work | None:
        """FLOPs and bytes of a call; launches matter only if the arguments are incomplete."""
        if _is_sparse(launches):
            return None
        own, parent = self.recorded(op), self._parents[op]
        around = self._columns[1][parent] if parent != NONE else None
        key = (own, around, launches if "TensorList" in own[2] else ())
        if key not in self._known:
            self._known[key] = work_of(self.call(op, launches))
        return self._known[key]

    def why(self, op: int, launches: tuple[KernelLaunch, ...]) -> str:
        """Why a call's FLOPs and bytes are unknown."""
        if not self._columns[2][op].strip("[]"):
            return "the trace has no shapes: record with record_shapes=True"
        if _is_sparse(launches):
            return "how much of the sparse matrix is stored was not recorded"
        return why_no_work(self.call(op, launches))

    def recorded(self, op: int) -> tuple[str, str, str, str, str]:
        """Name, shapes, types, strides and values, as text."""
        name, shapes, dtypes, strides, concrete = self._columns
        return name[op], shapes[op], dtypes[op], strides[op], concrete[op]

    def alone(self, op: int) -> OpCall:
        """The call alone, without enclosing ops and launches; equal calls are built once."""
        key = self.recorded(op)
        if key not in self._alone:
            self._alone[key] = call_from_kineto(*key)
        return self._alone[key]

    def call(self, op: int, launches: tuple[KernelLaunch, ...], depth: int = 1) -> OpCall:
        """The call, with the op around it."""
        parent = self._parents[op]
        around = self.call(parent, (), depth - 1) if depth and parent != NONE else None
        return call_from_kineto(*self.recorded(op), launches=launches, parent=around)


@lru_cache(maxsize=10_000)
def on_one_line(text: str) -> str:
    """JSON on one line, however the file was indented."""
    try:
        return msgspec.json.format(text, indent=0) if text else ""
    except (ValueError, RecursionError):
        return text


def _is_sparse(launches: tuple[KernelLaunch, ...]) -> bool:
    """Whether an operand is a sparse matrix, whose recorded shape is that of the whole matrix."""
    return any(identify(launch.name).is_sparse for launch in launches)
