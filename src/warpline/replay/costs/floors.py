"""The least time of each row of `gpu`: its share of its op's work, under the roof of its device.

Half-precision arithmetic halves the bytes of fp32 tensors as well. A collective has no floor, because it also waits for
other ranks. Where the device or the work is unknown, the floor is zero and the fixes' own constants bound what they
promise.

A kernel's pace is what its own algorithm and grid allow: its blocks have to be started, additions to memory are done in
the caches, and sectors and passes carry more than what is asked for.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from warpline.analyses.device import trace_device
from warpline.analyses.op_calls import OpCalls
from warpline.analyses.roofline.floors import math_of
from warpline.analyses.roofline.pieces import GpuWork, Piece
from warpline.errors import WarplineError
from warpline.hardware import Roof, roof_of
from warpline.hardware.chips import DRAM, TENSOR, VECTOR
from warpline.replay.costs.device import device_costs
from warpline.trace.arrays import Floats, Int64s
from warpline.trace.table import filled
from warpline.trace.trace import Trace
from warpline.work import Work
from warpline.work.collective import FAMILY as COLLECTIVE

HALF_PRECISION = {"bf16", "fp16"}
SINGLE_PRECISION = {"fp32", "tf32"}
Key = TypeVar("Key", str, tuple[str, str])


class Floors:
    """FLOPs and bytes of each GPU row, found once, and its roofline time at any precision."""

    def __init__(self, trace: Trace, calls: OpCalls | None = None) -> None:
        size = len(trace.gpu)
        self._matrix, self._vector, self._bytes = np.zeros(size), np.zeros(size), np.zeros(size)
        self._extra, self._additions, self._blocks = np.zeros(size), np.zeros(size), np.zeros(size)
        self._of_link: dict[str, Int64s] = {}
        """Rows by the link or memory that carries their bytes."""
        self._of_math: dict[tuple[str, str], Int64s] = {}
        """Rows by the type and unit of their arithmetic."""
        self.roof: Roof | None = None
        try:
            _, chip = trace_device(trace)
            self.roof = roof_of(chip) if chip else None
            self._gather(trace, calls)
        except WarplineError:
            self.roof = None

    def _gather(self, trace: Trace, calls: OpCalls | None) -> None:
        # A device may run behind its steps, so all GPU rows are needed, whichever steps are in view.
        gpu_work = GpuWork(trace.whole(), calls)
        known = [
            (piece, piece.work)
            for piece in gpu_work.pieces
            if piece.work and not piece.work.estimate and piece.work.model != COLLECTIVE
        ]
        spots = np.array([spot for piece, _ in known for spot in piece.rows], np.int64)
        owner = np.repeat(np.arange(len(known)), [len(piece.rows) for piece, _ in known])
        kernel = gpu_work.is_kernel[spots]
        computing = np.bincount(owner[kernel], minlength=len(known)) > 0
        chosen = kernel | ~computing[owner]
        spots, owner = spots[chosen], owner[chosen]
        # The kernels of a piece share its FLOPs and bytes in proportion to their times.
        times = gpu_work.time_ns[spots].astype(np.float64)
        share = times / np.maximum(np.bincount(owner, times, len(known)), 1)[owner]
        rows = gpu_work.rows[spots]
        # Equal pieces share one object, which is read once.
        number: dict[int, int] = {}
        which = np.array([number.setdefault(id(work), len(number)) for _, work in known], np.int64)[owner]
        works = list({id(work): work for _, work in known}.values())
        self._matrix[rows] = share * np.array([work.matrix_flops for work in works], np.float64)[which]
        self._vector[rows] = share * np.array([work.vector_flops for work in works], np.float64)[which]
        self._bytes[rows] = share * np.array([work.bytes for work in works], np.float64)[which]
        self._extra[rows] = share * np.array([work.extra_bytes for work in works], np.float64)[which]
        self._additions[rows] = share * np.array([work.additions for work in works], np.float64)[which]
        self._blocks[rows] = filled(gpu_work.blocks, 0)[spots].astype(np.float64)
        self._of_link = _rows_of([work.link for work in works], which, rows)
        maths = _maths(gpu_work, known)
        self._of_math = {math: of_math for math, of_math in _rows_of(maths, owner, rows).items() if math[0]}

    @property
    def memory_bytes_per_ns(self) -> float | None:
        """Bandwidth of the device memory, if known."""
        memory = self.roof.bandwidth(DRAM) if self.roof else None
        return memory.value / 1e9 if memory else None

    def least_ns(self, dtype: str | None = None) -> Floats:
        """Floor of each row, with GEMMs in `dtype` (None: as they ran)."""
        result = np.zeros(len(self._bytes))
        if self.roof is None:
            return result
        for link, rows in self._of_link.items():
            bandwidth = self.roof.bandwidth(link)
            if bandwidth is not None:
                result[rows] = self._bytes[rows] / bandwidth.value * 1e9
        for (own, unit), rows in self._of_math.items():
            lower = dtype is not None and own in SINGLE_PRECISION
            if lower and dtype in HALF_PRECISION and DRAM in self._of_link:
                result[np.intersect1d(rows, self._of_link[DRAM])] /= 2
            peak = self.roof.compute(str(dtype) if lower else own, TENSOR if lower else unit)
            if peak is not None:
                result[rows] = np.maximum(result[rows], self._matrix[rows] / peak.value * 1e9)
            plain = self.roof.compute("fp32", VECTOR)
            if plain is not None:
                result[rows] = np.maximum(result[rows], self._vector[rows] / plain.value * 1e9)
        return result

    def pace_ns(self) -> Floats:
        """The least time of each row with the algorithm and the grid that it has; zero where the floor is."""
        floor = self.least_ns()
        costs = device_costs(self.roof)
        memory = self.memory_bytes_per_ns
        extra = self._extra / memory if memory else 0.0
        paces = (floor + extra, self._additions * costs.addition.low, self._blocks * costs.block.low)
        return np.where(floor > 0, np.maximum.reduce(paces), 0.0)


def _maths(gpu_work: GpuWork, pieces: list[tuple[Piece, Work]]) -> list[tuple[str, str]]:
    """Data type and unit of the arithmetic of each piece; equal pieces are looked at once."""
    seen: dict[object, tuple[str, str]] = {}
    result = []
    for piece, work in pieces:
        key = id(piece) if piece.alike is None else piece.alike
        if key not in seen:
            seen[key] = math_of(work, gpu_work.kernel_names(piece))
        result.append(seen[key])
    return result


def _rows_of(keys: list[Key], owner: Int64s, rows: Int64s) -> dict[Key, Int64s]:
    """The rows whose owners have each key."""
    number = {key: position for position, key in enumerate(dict.fromkeys(keys))}
    which = np.array([number[key] for key in keys], np.int64)[owner]
    return {key: rows[which == position] for key, position in number.items()}
