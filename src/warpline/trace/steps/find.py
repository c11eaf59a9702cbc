"""Finds the steps of a recording: the repeated unit of work."""

from __future__ import annotations

from warpline.trace.launches import Launches
from warpline.trace.steps.choice import FoundSteps, profiler_steps, with_gpu_work
from warpline.trace.steps.frames import loop_of_frames
from warpline.trace.steps.loops import loop_of_ranges, steps_of_engine, steps_of_optimizer
from warpline.trace.steps.repetition import steps_from_repetition
from warpline.trace.trace import Trace


def find_steps(trace: Trace) -> FoundSteps | None:
    """The outermost repeated unit that covers the time; None if the recording is not of steps.

    Profiler steps, else the ranges of an engine, else a loop of ranges or of Python functions, else repetition on the
    device, else what lies between the ends of the optimizer's steps.
    """
    ranges = trace.ranges
    marked = profiler_steps(ranges)
    if marked is not None:
        return with_gpu_work(marked, trace.gpu, trace.api)
    if not len(trace.gpu):
        return None
    launches = Launches.of(trace.gpu, trace.api)
    return (
        steps_of_engine(ranges, launches)
        or loop_of_ranges(ranges, launches)
        or loop_of_frames(trace.python, launches)
        or steps_from_repetition(trace)
        or steps_of_optimizer(ranges, launches)
    )
