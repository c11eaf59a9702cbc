"""The step without the profiler, where the runs of both sides were timed before they were recorded.

A profiler costs the CPU time in every op. Where that makes the CPU set the pace on both sides, the recorded steps hide
what a change gains, and only a stopwatch shows it. So its times decide where there are any. They are judged as recorded
steps are: two runs differ by more than their steps tell. What is usual follows from the parts of the step: the device's
work and copies are as long as recorded, and for the rest of the timed step it waited.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from warpline.capture.run_folder import timed_step
from warpline.compare.spread import BUSY_SPREAD, COPY_SPREAD, IDLE_SPREAD, Difference, RunTime, Side, difference
from warpline.trace.trace import Trace

MAX_STEP_RATIO = 1.5
"""A recorded step of the stopwatch and one of the trace are about the same work if their times differ by less."""
MAX_WORK_RATIO = 1.25
"""The device's work in a recorded step is longer than the timed step by at most this ratio (clocks); else the stopwatch
did not wait for the device."""


class BareStepTime(Struct, frozen=True):
    """The step of a run before it was recorded."""

    step_ns: float
    laps_ns: tuple[int, ...]
    """Of single steps, in order."""
    cpu_ns: float | None
    """A step by the CPU's clock; None if unknown."""


def stopwatch_of(trace: Trace, lengths_ns: Sequence[int], recorded: RunTime) -> BareStepTime | None:
    """The time of a step before recording; None if the run was not timed, or the time is not about these steps."""
    timed = timed_step(trace.file)
    if timed is None or timed.median_ns * MAX_WORK_RATIO < recorded.work_ns + recorded.copies_ns:
        return None
    if timed.recorded_ns is not None:
        ratio = timed.recorded_ns / max(float(np.median(lengths_ns)), 1.0)
        if not 1 / MAX_STEP_RATIO < ratio < MAX_STEP_RATIO:
            return None
    return BareStepTime(timed.median_ns, timed.laps_ns, timed.cpu_ns)


Times = Sequence[BareStepTime | None]
"""Of the runs of a side."""


def is_timed(times: Times) -> bool:
    """Whether most runs of a side were timed."""
    return 2 * sum(time is not None for time in times) > len(times)


def typical_ns(times: Times) -> int:
    """The step of the run that is the median by the stopwatch."""
    known = sorted(time.step_ns for time in times if time is not None)
    return round(known[(len(known) - 1) // 2])


def timed_difference(sides: tuple[Side, Side], times: tuple[Times, Times], least_effect: float) -> Difference | None:
    """Compare the steps without the profiler; None unless both sides were timed. `sides` are the recorded steps."""
    if not all(map(is_timed, times)):
        return None
    both = [
        [(run, time) for run, time in zip(side, its, strict=True) if time is not None]
        for side, its in zip(sides, times, strict=True)
    ]
    spread = math.sqrt(float(np.mean([usual_spread(run, time) ** 2 for side in both for run, time in side])))
    a, b = (tuple(_whole(run, time) for run, time in side) for side in both)
    return replace(difference(a, b, least_effect, spread), judged_by="stopwatch")


def usual_spread(run: RunTime, time: BareStepTime) -> float:
    """How much the timed step usually differs between runs, relative to itself."""
    busy_ns = run.work_ns + run.copies_ns
    fits = min(1.0, time.step_ns / busy_ns) if busy_ns else 0.0
    idle_ns = time.step_ns - fits * busy_ns
    parts = BUSY_SPREAD * fits * run.work_ns, COPY_SPREAD * fits * run.copies_ns, IDLE_SPREAD * idle_ns
    return math.hypot(*parts) / time.step_ns


def _whole(run: RunTime, time: BareStepTime) -> RunTime:
    """The timed step in one piece. If the CPU runs ahead of the device in the recorded steps, it does so without a
    profiler; how far is known where its clock was read."""
    ahead_ns = min(time.cpu_ns or run.ahead_ns, time.step_ns) if run.ahead_ns else 0.0
    return RunTime(time.step_ns, 0.0, np.array(time.laps_ns, np.int64), ahead_ns=ahead_ns, host=run.host)
