"""FLOPs, bytes and minimum time of each GPU operation, so that any group of them can be summed."""

from __future__ import annotations

import numpy as np

from warpline.analyses.roofline import priced
from warpline.analyses.roofline_pieces import Gathered
from warpline.hardware import Roof
from warpline.records import dataclass
from warpline.trace.columns import Bools, Floats


@dataclass(frozen=True, slots=True)
class RowWork:
    """By position in `Gathered.gpu`. The operations of one call share its work in proportion to their time."""

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


def row_work(gathered: Gathered, roof: Roof | None) -> RowWork:
    """The work of each operation in view."""
    count = len(gathered.gpu)
    flops, size, floor_ns, compute = (np.zeros(count) for _ in range(4))
    known, has_floor = np.zeros(count, bool), np.zeros(count, bool)
    is_kernel, times = gathered.is_kernel, gathered.numbers["time_ns"].to_numpy()
    for piece, work, _, floor in priced(gathered, gathered.pieces, roof):
        rows = np.array(piece.rows)
        known[rows] = True
        working = rows[is_kernel[rows]]
        working = working if len(working) else rows
        time_ns = times[working]
        whole = int(time_ns.sum())
        share = time_ns / whole if whole else np.full(len(working), 1 / len(working))
        flops[working] = share * (work.matrix_flops or work.total_flops)
        size[working] = share * work.bytes
        least_ns = max(floor.compute_ns, floor.memory_ns)
        if not floor.known or (work.estimate and least_ns > whole):
            continue
        has_floor[rows] = True
        floor_ns[working] = share * min(least_ns, whole)
        if floor.compute_ns > floor.memory_ns:
            compute[working] = floor_ns[working]
    return RowWork(flops, size, known, floor_ns, has_floor, compute)
