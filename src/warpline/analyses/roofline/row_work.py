"""FLOPs, bytes and minimum time of each GPU operation, so that any group of them can be summed."""

from __future__ import annotations

import numpy as np
import polars as pl
from msgspec import Struct

from warpline.analyses.roofline.pieces import GpuWork
from warpline.hardware import Roof
from warpline.trace.arrays import Bools, Floats, Int64s

ROOF_PCT = pl.when(pl.col("priced").sum() > 0).then(100 * pl.col("floor").sum() / pl.col("priced").sum())
"""Minimum over measured time of a group of operations, in percent, where the minimum is known."""


class RowWork(Struct, frozen=True):
    """By position in `GpuWork.gpu`. The operations of one call share its work in proportion to their time."""

    time_ns: Int64s
    flops: Floats
    bytes: Floats
    known: Bools
    """Whether FLOPs and bytes are known."""
    floor_ns: Floats
    """Minimum time, at most the measured time; 0 where it is unknown."""
    priced: Bools
    """Whether the minimum time is known."""
    compute: Floats
    """Part of the minimum time of calls that arithmetic bounds; the rest is bound by memory or a link."""

    def columns(self, rows: Int64s) -> dict[str, Floats | Int64s]:
        """What can be summed over some of the operations; `priced` is the time of those whose minimum is known."""
        return {
            "time": self.time_ns[rows],
            "flops": self.flops[rows],
            "bytes": self.bytes[rows],
            "floor": self.floor_ns[rows],
            "priced": np.where(self.priced, self.time_ns, 0)[rows],
            "compute": self.compute[rows],
            "known": self.known.astype(np.float64)[rows],
        }


def row_work(gpu_work: GpuWork, roof: Roof | None) -> RowWork:
    """The work of each operation in view."""
    count = len(gpu_work.gpu)
    flops, size, floor_ns, compute = (np.zeros(count) for _ in range(4))
    known, has_floor = np.zeros(count, bool), np.zeros(count, bool)
    is_kernel, times = gpu_work.is_kernel, gpu_work.time_ns
    calls = gpu_work.priced(roof)
    rows = np.array([row for piece, *_ in calls for row in piece.rows], np.int64)
    owner = np.repeat(np.arange(len(calls)), [len(piece.rows) for piece, *_ in calls])
    known[rows] = True
    # Kernels do the work of a call; without one, all its operations do.
    computes = np.bincount(owner[is_kernel[rows]], minlength=len(calls)) > 0
    chosen = is_kernel[rows] | ~computes[owner]
    working, caller = rows[chosen], owner[chosen]
    whole = np.bincount(caller, times[working], len(calls))
    alone = np.bincount(caller, minlength=len(calls))
    share = np.where(whole[caller] > 0, times[working] / np.maximum(whole, 1)[caller], 1 / np.maximum(alone, 1)[caller])
    flops[working] = share * np.array([floor.flops for *_, floor in calls], float)[caller]
    size[working] = share * np.array([work.bytes for _, work, *_ in calls], float)[caller]
    computing, moving = np.array([(floor.compute_ns, floor.memory_ns) for *_, floor in calls], float).reshape(-1, 2).T
    least = np.maximum(computing, moving)
    estimate = np.array([work.estimate for _, work, *_ in calls], bool)
    sound = np.array([floor.known for *_, floor in calls], bool) & ~(estimate & (least > whole))
    has_floor[rows] = sound[owner]
    floor_ns[working] = share * np.where(sound, np.minimum(least, whole), 0)[caller]
    compute[working] = np.where((computing > moving)[caller], floor_ns[working], 0)
    return RowWork(times, flops, size, known, floor_ns, has_floor, compute)
