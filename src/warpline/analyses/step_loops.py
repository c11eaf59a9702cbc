"""What a step repeats: optimizer steps, forward calls, and sequences of GPU operations (layers, micro-batches).

They are parts of a step, not steps: an iteration of reinforcement learning is 64 forward calls and 16 optimizer steps.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from warpline.library_names import OPTIMIZER_STEP
from warpline.trace.arrays import NONE, Int64s
from warpline.trace.cut import cut_to_steps
from warpline.trace.nesting import nearest_marked
from warpline.trace.steps.choice import StepChoice, on_device
from warpline.trace.steps.repetition import repeated_work
from warpline.trace.trace import Trace
from warpline.units import several


class StepLoops(Struct, frozen=True):
    """How often a typical step does what; 0 for what is not known."""

    optimizer_steps: int = 0
    forward_calls: int = 0
    """Calls of nn.Modules that no other module calls; known with Python frames."""
    repeats: int = 0
    """How often a sequence of GPU operations is repeated that takes half of them or more."""
    repeated_operations: int = 0
    """Number of operations in that sequence."""

    @property
    def calls(self) -> str:
        """`16 optimizer steps and 160 forward calls`; empty where neither is repeated."""
        if max(self.optimizer_steps, self.forward_calls) < 2:
            return ""
        counted = {"optimizer step": self.optimizer_steps, "forward call": self.forward_calls}
        return " and ".join(several(number, what) for what, number in counted.items() if number)

    @property
    def words(self) -> str:
        """The same with the repeated GPU operations."""
        work = f"{self.repeats:,} repeats of {several(self.repeated_operations, 'GPU operation')}"
        return "; ".join(filter(None, (self.calls, work if self.repeats > 1 else "")))


def step_loops(trace: Trace) -> StepLoops:
    """What the typical step in view repeats."""
    steps = trace.steps_in_view
    if not len(steps):
        return StepLoops()
    optimizer = forward = 0
    if not on_device(steps):
        ranges, python = trace.ranges, trace.python
        optimizer = _per_step(trace, ranges.start_ns[ranges.name.like(OPTIMIZER_STEP) & (ranges.thread != NONE)])
        is_module = python.module.codes != NONE
        inside = np.append(nearest_marked(python.parent, is_module) != NONE, False)
        forward = _per_step(trace, python.start_ns[is_module & ~inside[python.parent]])
    starts, ends = trace.step_spans
    typical = int(np.argsort(ends - starts, kind="stable")[len(starts) // 2])
    first = (trace.chosen_steps.first or 0) if trace.chosen_steps else 0
    one = cut_to_steps(trace.with_steps(StepChoice(first + typical, first + typical + 1)))
    period = repeated_work(one) if len(one.gpu) else None
    return StepLoops(optimizer, forward, period.repeats if period else 0, period.length if period else 0)


def _per_step(trace: Trace, moments: Int64s) -> int:
    steps, ordered = trace.steps_in_view, np.sort(moments)
    return int(np.median(np.searchsorted(ordered, steps.end_ns) - np.searchsorted(ordered, steps.start_ns)))
