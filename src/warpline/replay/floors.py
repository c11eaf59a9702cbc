"""The least time of each row of `gpu`: its share of its op's work, under the roof of its device.

Half-precision arithmetic halves the bytes of fp32 tensors as well. Where the device or the work is unknown, the floor
is zero and the interventions' own constants bound what they promise.
"""

from __future__ import annotations

import numpy as np

from warpline.analyses.roofline import math_of, trace_device
from warpline.analyses.roofline_pieces import Gathered
from warpline.errors import WarplineError
from warpline.hardware import Roof, roof_of
from warpline.hardware.chips import DRAM, TENSOR, VECTOR
from warpline.replay.model import Floats
from warpline.trace.trace import Trace
from warpline.work import MATRIX

HALF = {"bf16", "fp16"}


class Floors:
    """Work of each GPU row, gathered once, and its floor at any precision."""

    def __init__(self, trace: Trace) -> None:
        size = len(trace.gpu)
        self.matrix, self.vector, self.bytes = np.zeros(size), np.zeros(size), np.zeros(size)
        self.dtype = np.full(size, "", object)
        self.unit = np.full(size, "", object)
        self.link = np.full(size, DRAM, object)
        self.roof: Roof | None = None
        try:
            _, chip = trace_device(trace)
            self.roof = roof_of(chip) if chip else None
            self._gather(trace)
        except WarplineError:
            self.roof = None

    def _gather(self, trace: Trace) -> None:
        # A device may run behind its steps: the floors of all its work are wanted, whichever steps are in view.
        gathered = Gathered(trace.whole())
        rows = gathered.gpu["row"].to_numpy()
        for piece in gathered.pieces:
            if piece.work is None or piece.work.estimate:
                continue
            kernels = [gathered.rows[spot] for spot in piece.rows if gathered.rows[spot].kind == "kernel"]
            chosen = [spot for spot in piece.rows if gathered.rows[spot].kind == "kernel"] or piece.rows
            total = sum(gathered.rows[spot].time_ns for spot in chosen) or 1
            dtype, unit = math_of(piece.work, [row.name for row in kernels])
            matrix = sum(part.count for part in piece.work.flops if part.unit == MATRIX)
            vector = sum(part.count for part in piece.work.flops if part.unit != MATRIX)
            for spot in chosen:
                share, row = gathered.rows[spot].time_ns / total, rows[spot]
                self.matrix[row], self.vector[row] = share * matrix, share * vector
                self.bytes[row] = share * piece.work.bytes
                self.dtype[row], self.unit[row], self.link[row] = dtype, unit, piece.work.link

    def least_ns(self, dtype: str | None = None) -> Floats:
        """Floor of each row, with matrix products in `dtype` (None: as they ran)."""
        result = np.zeros(len(self.bytes))
        if self.roof is None:
            return result
        for link in set(self.link.tolist()):
            bandwidth = self.roof.bandwidth(link)
            if bandwidth is not None:
                mine = self.link == link
                result[mine] = self.bytes[mine] / bandwidth.value * 1e9
        if dtype in HALF:
            result = np.where((self.link == DRAM) & np.isin(self.dtype, ["fp32", "tf32"]), result / 2, result)
        for own, unit in {(a, b) for a, b in zip(self.dtype.tolist(), self.unit.tolist(), strict=True) if a}:
            mine = (self.dtype == own) & (self.unit == unit)
            lower = dtype is not None and own in {"fp32", "tf32"}
            peak = self.roof.compute(str(dtype) if lower else own, TENSOR if lower else unit)
            if peak is not None:
                result[mine] = np.maximum(result[mine], self.matrix[mine] / peak.value * 1e9)
            plain = self.roof.compute("fp32", VECTOR)
            if plain is not None:
                result[mine] = np.maximum(result[mine], self.vector[mine] / plain.value * 1e9)
        return result
