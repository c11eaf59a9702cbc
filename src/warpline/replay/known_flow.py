"""What the recorded data flow says about GPU operations: which of them share tensors, and which nobody reads.

Without it (`LabelledGraph.dataflow` is None) fixes guess from shapes.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from warpline.trace.arrays import NONE, Bools, Int64s
from warpline.trace.dataflow import DataflowGraph
from warpline.trace.trace import Trace

LEAST_MATCHED = 0.5
"""Share of the ops that must have a call; with less, the second pass saw another program."""
ADDING = r"^aten::(add_?|_foreach_add_?|cat|stack|_cat|copy_|accumulate_?)$"
"""Ops that add up or gather what iterations made: they read the results of several."""


class KnownFlow:
    """The data flow of GPU operations: arrays have one entry per graph node."""

    def __init__(self, flow: DataflowGraph, call_of_op: Int64s, op: Int64s) -> None:
        self.flow = flow
        self.call: Int64s = np.append(call_of_op, NONE)[op]
        """The call of each node's innermost op; NONE if it has none."""

    @classmethod
    def of(cls, trace: Trace, op: Int64s) -> KnownFlow | None:
        """The data flow recorded with a trace; None without, and if it does not fit. `op` is the op of each node."""
        flow = DataflowGraph.of(trace)
        if flow is None or not len(trace.ops):
            return None
        calls = flow.calls_of(trace)
        return cls(flow, calls, op) if (calls != NONE).mean() >= LEAST_MATCHED else None

    def together(self, nodes: Int64s) -> Int64s | None:
        """Which of these nodes share tensors with each other: the same number for those; None if one is unknown."""
        calls = self.call[nodes]
        return None if (calls == NONE).any() else self.flow.connected(calls)

    def are_independent(self, iterations: Int64s) -> bool | None:
        """Whether iterations (a row of nodes each) read nothing that another one wrote; None if that is not known."""
        calls = self.call[iterations]
        if (calls == NONE).any():
            return None
        return self.flow.are_independent(list(calls), self._adding)

    @cached_property
    def _adding(self) -> Bools:
        return self.flow.calls.op.like(ADDING)

    @cached_property
    def never_read(self) -> Bools:
        """Nodes whose result no op reads, in any step."""
        found = np.append(self.flow.never_read, False)
        return found[self._in_first_step[self.call]]

    @cached_property
    def copies_needed(self) -> Bools:
        """Nodes that copy a tensor which could not be read in its place, because one of the two is written to later."""
        return np.append(self.flow.copies_needed, False)[self.call]

    @cached_property
    def _in_first_step(self) -> Int64s:
        """For each call, the same call of the first step, of which it is known what is read later."""
        return np.append(self.flow.same_in_first_step, NONE)

    @cached_property
    def shapes_change(self) -> bool | None:
        """Whether a GPU operation takes or makes a tensor of another shape in the next step; None after one step."""
        if self.flow.steps < 2:
            return None
        used = np.append(self._in_first_step[self.call[self.call != NONE]], NONE)
        return bool(np.isin([change.call for change in self.flow.growing], used).any())
