"""The ops in which the CPU spends longer on one side: what it does while the device waits."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from warpline.intervals import Spans
from warpline.trace.arrays import NONE, containing, grouped
from warpline.trace.schema import Ops
from warpline.trace.trace import Trace

MIN_SHARE = 0.05
"""Share of the longer step by which the time in an op must differ."""
MAX_LISTED = 3


class CpuOp(Struct, frozen=True):
    """An outermost op of the CPU, per step."""

    name: str
    a_ns: int
    b_ns: int

    @property
    def change_ns(self) -> int:
        """How much longer the CPU is in it in B."""
        return self.b_ns - self.a_ns


def changed_cpu_ops(a: Trace, b: Trace, steps_a: Spans, steps_b: Spans) -> tuple[CpuOp, ...]:
    """The outermost ops whose time differs most; none if a side has no ops."""
    if not len(a.ops) or not len(b.ops):
        return ()
    inside_a, inside_b = _inside(a, steps_a), _inside(b, steps_b)
    times_a, times_b = _per_step(inside_a, len(steps_a)), _per_step(inside_b, len(steps_b))
    # An op that is still there, but inside another one, is not gone.
    moved = set(inside_a.name.present()) - times_a.keys() | set(inside_b.name.present()) - times_b.keys()
    longest = max(float((steps.ends - steps.starts).mean()) for steps in (steps_a, steps_b))
    names = sorted({*times_a, *times_b} - moved)
    ops = [CpuOp(name, round(times_a.get(name, 0.0)), round(times_b.get(name, 0.0))) for name in names]
    large = [one for one in ops if abs(one.change_ns) >= MIN_SHARE * longest]
    return tuple(sorted(large, key=lambda one: -abs(one.change_ns))[:MAX_LISTED])


def _inside(trace: Trace, steps: Spans) -> Ops:
    """The ops that begin in these steps."""
    return trace.ops[containing(steps.starts, steps.ends, trace.ops.start_ns) != NONE]


def _per_step(ops: Ops, steps: int) -> dict[str, float]:
    """Time per step in the outermost ops of each name."""
    lengths, outermost = ops.end_ns - ops.start_ns, np.flatnonzero(ops.depth == 0)
    by_name = grouped(outermost, ops.name.codes[outermost])
    return {ops.name.words[code]: int(lengths[rows].sum()) / steps for code, rows in by_name}
