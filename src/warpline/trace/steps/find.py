"""Finds the steps of a recording: the repeated unit of work."""

from __future__ import annotations

from warpline.library_names import PROFILER_STEP
from warpline.trace.arrays import NONE
from warpline.trace.launches import Launches
from warpline.trace.steps.choice import FoundSteps, steps_of_ranges
from warpline.trace.steps.frames import loop_of_frames
from warpline.trace.steps.loops import loop_of_ranges, steps_of_optimizer
from warpline.trace.steps.repetition import steps_from_repetition
from warpline.trace.trace import Trace


def find_steps(trace: Trace) -> FoundSteps | None:
    """Profiler steps, else a loop of ranges or of Python functions, else repetition on the device, else what lies
    between the ends of the optimizer's steps; None if the recording is not of steps."""
    ranges = trace.ranges
    profiler = ranges[ranges.name.like(PROFILER_STEP) & (ranges.end_ns != NONE)]
    if len(profiler):
        return steps_of_ranges(profiler, "profiler_step")
    if not len(trace.gpu):
        return None
    launches = Launches.of(trace.gpu, trace.api)
    return (
        loop_of_ranges(ranges, launches)
        or loop_of_frames(trace.python, launches)
        or steps_from_repetition(trace)
        or steps_of_optimizer(ranges, launches)
    )
