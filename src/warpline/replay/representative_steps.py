"""Which steps of a trace are replayed: as few as stand for all, so that a long trace takes no longer than a short one.

Steps that are alike say the same, so a few of them in a row are enough. Cold steps, which a recording has once, are set
aside: the answer is about warm ones. Where long steps come again and again, they belong to it. Steps are taken from one
run without a pause: what lies in a pause between two runs (the profiler was off, the program did something else) is no
part of a step. docs/steps.md says all this to users.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TypeVar

import numpy as np
from msgspec.structs import replace
from numpy.lib.stride_tricks import sliding_window_view

from warpline.replay.cold_steps import find_cold_steps
from warpline.replay.costs.host import DEFAULT_KINETO
from warpline.replay.replay import UNEVEN, are_uneven, typical_ns
from warpline.trace.arrays import Floats, Int64s
from warpline.trace.cut import cut_to_steps
from warpline.trace.steps.choice import ColdSteps, StepChoice
from warpline.trace.trace import Trace

MAX_STEPS = 6
ENOUGH_CALLS = 12_000
"""With so many API calls in a few steps, more steps would add time and no certainty."""
SAME_LENGTH = 0.01
"""Typical lengths that differ by this share are the same: steps of one program differ by more among themselves."""
PAUSE_IN_PROFILER_STEPS, PAUSE_SHARE = 7, 0.02
"""A pause between two steps that is longer, as a multiple of the profiler's own step() and as a share of a step, is the
program's."""
UNUSUAL = 3
"""A pause this many times the usual one is not what the program does between all steps."""
LONGER_BY = 1.4
"""The trace is cut to the chosen steps where it has this many times as many."""
AnyTrace = TypeVar("AnyTrace", bound=Trace)


def steps_to_judge(trace: Trace) -> Trace:
    """The trace of the steps that stand for all. What lies outside them is left out where it is most of the trace."""
    judged = judged_steps(trace)
    return cut_to_steps(judged) if len(judged.steps_in_view) * LONGER_BY < len(trace.all_steps) else judged


def judged_steps(trace: Trace) -> Trace:
    """The trace, looked at during the steps that stand for all; steps that were asked for stay."""
    steps = trace.all_steps
    if not trace.has_some_steps_chosen and len(steps):
        starts, ends = trace.step_spans
        lengths = (ends - starts).astype(np.float64)
        pauses = _long_pauses(steps.start_ns, steps.end_ns, is_exact=steps.found_by[0] == "profiler_step")
        cold = trace.once(find_cold_steps)
        if cold is not None:
            trace = replace(trace, cold=cold)
        first, beyond = _unbroken_run(lengths, pauses, cold)
        calls_per_step = max(len(trace.api), 1) / len(steps)
        chosen = representative_steps(lengths[first:beyond], round(ENOUGH_CALLS / calls_per_step))
        trace = trace.with_steps(StepChoice(first + chosen.start, first + chosen.stop))
    return trace


def warm_steps(trace: Trace) -> StepChoice | None:
    """The steps without cold ones at either end; None without steps, or where some were chosen."""
    if trace.has_some_steps_chosen or not len(trace.all_steps):
        return None
    cold, count = trace.once(find_cold_steps), len(trace.all_steps)
    if cold is None or (cold.first and cold.first + cold.count < count):
        return StepChoice(0, count)
    return StepChoice(0, cold.first) if cold.first else StepChoice(cold.count, count)


def in_warm_steps(trace: AnyTrace) -> AnyTrace:
    """The trace, looked at during its warm steps: start-up has no share in its tables. Unchanged without steps, or
    where some were chosen."""
    steps = warm_steps(trace)
    if steps is None:
        return trace
    warm = trace.with_steps(steps)
    cold = trace.once(find_cold_steps) if warm.has_some_steps_chosen else None
    return replace(warm, cold=cold) if cold else warm


def _long_pauses(starts: Int64s, ends: Int64s, *, is_exact: bool) -> Int64s:
    """Steps before which the recording paused. Between profiler steps a program does nothing; between others it may
    load or log, as it then does every time."""
    pause = starts[1:] - ends[:-1]
    profiler_ns = PAUSE_IN_PROFILER_STEPS * DEFAULT_KINETO.step.high
    long = pause > max(profiler_ns, PAUSE_SHARE * float(np.median(ends - starts)))
    if not is_exact and len(pause):
        long &= pause > UNUSUAL * np.median(pause)
    return np.flatnonzero(long) + 1


def _unbroken_run(lengths: Floats, pauses: Int64s, cold: ColdSteps | None) -> tuple[int, int]:
    """Of the runs of steps between pauses and cold steps, a longest; of several, the one whose typical step is that of
    all, and of these the one in the middle."""
    breaks = {0, *pauses.tolist(), len(lengths)}
    cold_steps = range(cold.first, cold.first + cold.count) if cold else range(0)
    breaks |= {cold_steps.start, cold_steps.stop} if cold else set()
    runs = [run for run in pairwise(sorted(breaks)) if run[0] not in cold_steps]
    most = max(beyond - first for first, beyond in runs)
    longest = [(first, beyond) for first, beyond in runs if beyond - first == most]
    typical = max(typical_ns(np.concatenate([lengths[slice(*run)] for run in longest])), 1.0)
    misses = [abs(typical_ns(lengths[slice(*run)]) / typical - 1) for run in longest]
    good = [run for run, miss in zip(longest, misses, strict=True) if miss <= max(SAME_LENGTH, min(misses))]
    return min(good, key=lambda run: abs(sum(run) - len(lengths)))


def representative_steps(lengths: Floats, enough: int) -> range:
    """A run of consecutive steps that stands for all; `enough` steps are enough where all are alike.

    Of runs that stand for the whole equally well, the longest is taken, and of these the one nearest to the middle.
    """
    most, uneven = min(MAX_STEPS, len(lengths)), _stays_uneven(lengths)
    if uneven and len(lengths) <= MAX_STEPS:
        # A cold first step must not be left out for having many calls.
        return range(len(lengths))
    typical = float(np.mean(lengths) if uneven else np.median(lengths))
    counts = range(most, 1, -1) if uneven else [min(max(enough, 1), most)]
    misses = [_misses(lengths, count, typical, np.mean if uneven else np.median) for count in counts]
    good = max(SAME_LENGTH, min(float(miss.min()) for miss in misses))
    count, miss = next(pair for pair in zip(counts, misses, strict=True) if pair[1].min() <= good)
    fitting = np.flatnonzero(miss <= good)
    first = int(fitting[np.abs(fitting - (len(lengths) - count + 1) // 2).argmin()])
    return range(first, first + count)


def _stays_uneven(lengths: Floats) -> bool:
    """Whether long steps come so often that a few steps in a row have one; a cold start of a long run is past."""
    long = lengths > UNEVEN * np.median(lengths)
    return are_uneven(lengths) and float(np.mean(long)) >= 1 / MAX_STEPS


def _misses(lengths: Floats, count: int, typical: float, average: Callable[..., Floats]) -> Floats:
    """How far the typical step of each run of so many steps is from that of all, as a share of it."""
    return np.abs(average(sliding_window_view(lengths, count), axis=1) / max(typical, 1.0) - 1)
