"""Where an op comes from: the Python code and nn.Module around it, or around the forward op that it differentiates."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from warpline.analyses.user_frames import UserFrames
from warpline.trace.arrays import NONE, Bools, Int64s
from warpline.trace.nesting import nearest_marked
from warpline.trace.trace import Trace

FRAMES_IN_A_STACK = 5
"""As in the examples of `key_averages(group_by_stack_n=5)`."""
BETWEEN_FRAMES = " < "
BACKWARD = " backward"
"""Follows the name of a module or range whose backward pass it is."""


class Origins:
    """The origin of each op of a trace; arrays have one more element for no op, at the end."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        forward = trace.ops.forward_op
        differentiates = np.append(nearest_marked(trace.ops.parent, forward != NONE), NONE)
        itself = np.append(np.arange(len(forward)), NONE)
        self.source = np.where(differentiates == NONE, itself, np.append(forward, NONE)[differentiates])
        """The op itself, or the forward op."""

    @cached_property
    def is_backward(self) -> Bools:
        """Which ops run in a backward pass: those with a forward op, and all on the autograd threads."""
        ops = self._trace.ops
        on_autograd_thread = nearest_marked(ops.parent, ops.forward_thread > 0) != NONE
        return np.append(on_autograd_thread | (self.source[:-1] != np.arange(len(ops))), False)

    @cached_property
    def frames(self) -> UserFrames:
        """The user's frames."""
        return self._trace.once(UserFrames)

    def modules(self, ops: Int64s) -> list[str | None]:
        """The innermost nn.Module of each op; None where none is known."""
        names = self._trace.ops.module.at(self.source[ops]).texts
        pairs = zip(names, self.is_backward[ops], strict=True)
        return [f"{name}{BACKWARD}" if name and backward else name or None for name, backward in pairs]

    def lines(self, ops: Int64s) -> list[str | None]:
        """The user's frame of each op as text, with the running line where it is known."""
        return self.frames.sites(*self._moments(ops)).tolist()

    def stacks(self, ops: Int64s) -> list[str | None]:
        """The innermost user frames of each op, the innermost first; else the stack recorded with it."""
        frames = self.frames
        if not frames.exist:
            recorded = self._trace.ops.stack.renamed(_innermost).at(self.source[ops]).texts
            return [stack or None for stack in recorded]
        rows = frames.at(*self._moments(ops)).tolist()
        stacks = {row: BETWEEN_FRAMES.join(frames.stack_above(row, FRAMES_IN_A_STACK)) for row in set(rows)}
        return [stacks[row] or None for row in rows]

    def _moments(self, ops: Int64s) -> tuple[Int64s, Int64s]:
        """Thread and start of each op, or of its forward op."""
        table, rows = self._trace.ops, self.source[ops]
        return np.append(table.thread, NONE)[rows], np.append(table.start_ns, NONE)[rows]


def _innermost(stack: str) -> str:
    """The first frames of a stack as the profiler writes it."""
    return BETWEEN_FRAMES.join(stack.split(";")[:FRAMES_IN_A_STACK])
