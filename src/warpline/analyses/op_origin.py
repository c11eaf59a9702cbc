"""Where an op comes from: the Python code and nn.Module around it, or around the forward op that it differentiates."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import polars as pl

from warpline.analyses.user_frames import UserFrames
from warpline.trace.arrays import NONE, Bools, Int64s, ids, integers
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
        ops = self._trace.stored("ops")
        marked = integers(ops["forward_thread"]) > 0
        around = nearest_marked(integers(ops["parent"]), marked) != NONE
        known: Bools = np.append(around, False)
        known[:-1] |= self.source[:-1] != np.arange(len(ops))
        return known

    @cached_property
    def frames(self) -> UserFrames:
        """The user's frames."""
        return UserFrames(self._trace)

    def modules(self, ops: Int64s) -> pl.Series:
        """The innermost nn.Module of each op; null where none is known."""
        names = self._trace.stored("ops")["module"].gather(ids(self.source[ops])).cast(pl.String)
        return _marked(names, self.is_backward[ops])

    def lines(self, ops: Int64s) -> pl.Series:
        """The user's frame of each op as text, with the running line where it is known."""
        return self.frames.sites(*self._moments(ops))

    def stacks(self, ops: Int64s) -> pl.Series:
        """The innermost user frames of each op, the innermost first; else the stack recorded with it."""
        frames = self.frames
        if not frames.exist:
            recorded = self._trace.stored("ops")["stack"].gather(ids(self.source[ops])).cast(pl.String)
            return recorded.str.split(";").list.head(FRAMES_IN_A_STACK).list.join(BETWEEN_FRAMES)
        inner, which = np.unique(frames.at(*self._moments(ops)), return_inverse=True)
        stacks = pl.Series(
            [frames.stack_above(frame, FRAMES_IN_A_STACK) for frame in inner.tolist()], dtype=pl.List(pl.String)
        )
        return stacks.list.join(BETWEEN_FRAMES).set(pl.Series(inner == NONE), None).gather(which)

    def _moments(self, ops: Int64s) -> tuple[Int64s, Int64s]:
        threads, starts = (
            np.append(integers(self._trace.stored("ops")[name]), NONE) for name in ("thread", "start_ns")
        )
        return threads[self.source[ops]], starts[self.source[ops]]


def _marked(names: pl.Series, backward: Bools) -> pl.Series:
    table = pl.DataFrame({"name": names, "backward": backward})
    return table.select(pl.when("backward").then(pl.col("name") + BACKWARD).otherwise("name").alias("name"))["name"]
