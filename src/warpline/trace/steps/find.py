"""Finds the steps of a recording: the repeated unit of work."""

from __future__ import annotations

import numpy as np

from warpline.api_names import BEGIN_CAPTURE
from warpline.trace.launches import Launches
from warpline.trace.schema import Api
from warpline.trace.steps.choice import FoundSteps, profiler_steps, with_gpu_work
from warpline.trace.steps.frames import loop_of_frames
from warpline.trace.steps.loops import cycle_of_ranges, loop_of_ranges, steps_of_engine, steps_of_optimizer
from warpline.trace.steps.repetition import steps_from_repetition
from warpline.trace.steps.token_reads import steps_of_token_reads
from warpline.trace.trace import Trace


def find_steps(trace: Trace) -> FoundSteps | None:
    """The outermost repeated unit that covers the time; None if the recording is not of steps.

    Profiler steps, else the ranges of an engine, else a loop of ranges or of Python functions, else repetition on the
    device, else what lies between two reads of sampled tokens, or between the ends of the optimizer's steps, else a
    cycle of ranges.
    """
    ranges = trace.ranges
    marked = profiler_steps(ranges)
    if marked is not None:
        return with_gpu_work(marked, trace.gpu, trace.api)
    if not len(trace.gpu):
        return None
    launches = Launches.of(trace.gpu, trace.api)
    found = (
        steps_of_engine(ranges, launches)
        or loop_of_ranges(ranges, launches)
        or loop_of_frames(trace.python, launches)
        or steps_from_repetition(trace)
        or steps_of_token_reads(trace, launches)
        or steps_of_optimizer(ranges, launches)
        or cycle_of_ranges(ranges, launches)
    )
    return None if found is None or _are_captured(found, trace.api) else found


def _are_captured(steps: FoundSteps, api: Api) -> bool:
    """Whether most of them capture a graph: an engine that captures its graphs piece by piece repeats itself too."""
    captures = np.sort(api.start_ns[api.name.like(BEGIN_CAPTURE)])
    inside = np.searchsorted(captures, steps.start_ns) < np.searchsorted(captures, steps.end_ns)
    return bool(2 * inside.sum() > len(inside))
