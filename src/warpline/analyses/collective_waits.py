"""How long the collectives of one rank surely waited for other ranks, from that rank's file alone.

A collective ends when its data has moved, and starts when this rank is ready: its time is a transfer and a wait for the
ranks that come later. Equal collectives (kind, group, size) have equal transfers, so none of their transfers takes
longer than the shortest of them, and what the others take beyond it is waiting, at the least. Who is late shows only
in the files of all ranks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable

import numpy as np

from warpline.analyses.breakdown import PRIORITY, activities_of
from warpline.analyses.recorded_collectives import communication_ops, recorded_collectives
from warpline.trace.arrays import NONE, Int64s
from warpline.trace.trace import Trace


def least_waits_ns(trace: Trace) -> Int64s:
    """For each row of `gpu` the time that it waited for other ranks at the least; 0 for what is no collective."""
    gpu = trace.gpu
    waits = np.zeros(len(gpu), np.int64)
    length = gpu.end_ns - gpu.start_ns
    for rows in _equal_collectives(trace, np.flatnonzero(activities_of(gpu) == PRIORITY.index("comm"))):
        waits[rows] = length[rows] - length[rows].min()
    return waits


def _equal_collectives(trace: Trace, rows: Int64s) -> list[Int64s]:
    """The rows of collectives of the same kind, group and size."""
    recorded, shapes = recorded_collectives(trace, rows), trace.ops.shapes
    names, places = trace.gpu.name.codes[rows].tolist(), _places_in_steps(trace, rows)
    alike: dict[Hashable, list[int]] = defaultdict(list)
    for row, name, op, place in zip(rows.tolist(), names, communication_ops(trace, rows).tolist(), places, strict=True):
        known = recorded[row]
        shape = shapes.text(op) if op != NONE else None
        size = known.message_bytes if known.message_bytes is not None else shape or place
        if size is not None:
            alike[name, known.kind, known.group, size].append(row)
    return [np.array(group) for group in alike.values()]


def _places_in_steps(trace: Trace, rows: Int64s) -> list[str | None]:
    """For each collective its place in the step, where all steps have as many: the same one of every step has the same
    size."""
    steps = trace.all_steps
    step = np.searchsorted(steps.start_ns, trace.gpu.start_ns[rows], side="right") - 1
    counts = np.bincount(step[step >= 0], minlength=len(steps))
    if len(steps) < 2 or (counts != counts[0]).any() or (step < 0).any():
        return [None] * len(rows)
    return [f"place {number % counts[0]}" for number in range(len(rows))]
