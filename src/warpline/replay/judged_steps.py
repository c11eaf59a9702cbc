"""Which steps of a trace are replayed: as few as stand for all, so that a long trace takes no longer than a short one.

Steps that are alike say the same, so a few of them in a row are enough; where they are uneven, the cold ones belong to
the answer. The steps taken are those whose typical length (see `typical_ns`) is that of the whole trace.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from warpline.replay.replay import UNEVEN, are_uneven
from warpline.trace.columns import Floats, integers
from warpline.trace.cut import cut_to_steps
from warpline.trace.steps import StepChoice
from warpline.trace.trace import Trace

MAX_STEPS = 6
ENOUGH_CALLS = 12_000
"""With so many API calls in a few steps, more steps would add time and no certainty."""
SAME_LENGTH = 0.01
"""Typical lengths that differ by this share are the same: steps of one program differ by more among themselves."""
LONGER_BY = 1.4
"""The trace is cut to the chosen steps where it has this many times as many."""


def steps_to_judge(trace: Trace) -> Trace:
    """The trace, looked at during the steps that stand for all of it; steps that were asked for stay."""
    steps = trace.table("steps")
    if trace.chosen_steps is None and len(steps):
        calls_per_step = max(len(trace.api), 1) / len(steps)
        lengths = (integers(steps["end_ns"]) - integers(steps["start_ns"])).astype(np.float64)
        trace = trace.with_steps(representative_steps(lengths, round(ENOUGH_CALLS / calls_per_step)))
    # What lies outside the steps is left out where it is most of the trace.
    return cut_to_steps(trace) if len(trace.steps_in_view) * LONGER_BY < len(steps) else trace


def representative_steps(lengths: Floats, enough: int) -> StepChoice:
    """A run of consecutive steps that stands for all; `enough` steps are enough where all are alike.

    Of runs that stand for the whole equally well, the longest is taken, and of these the one nearest to the middle.
    """
    most, uneven = min(MAX_STEPS, len(lengths)), _stays_uneven(lengths)
    if uneven and len(lengths) <= MAX_STEPS:
        # A cold first step must not be left out for having many calls.
        return StepChoice(0, len(lengths))
    typical = float(np.mean(lengths) if uneven else np.median(lengths))
    counts = range(most, 1, -1) if uneven else [min(max(enough, 1), most)]
    misses = [_misses(lengths, count, typical, np.mean if uneven else np.median) for count in counts]
    good = max(SAME_LENGTH, min(float(miss.min()) for miss in misses))
    count, miss = next(pair for pair in zip(counts, misses, strict=True) if pair[1].min() <= good)
    fitting = np.flatnonzero(miss <= good)
    first = int(fitting[np.abs(fitting - (len(lengths) - count + 1) // 2).argmin()])
    return StepChoice(first, first + count)


def _stays_uneven(lengths: Floats) -> bool:
    """Whether long steps come so often that a few steps in a row have one; a cold start of a long run is past."""
    long = lengths > UNEVEN * np.median(lengths)
    return are_uneven(lengths) and float(np.mean(long)) >= 1 / MAX_STEPS


def _misses(lengths: Floats, count: int, typical: float, average: Callable[..., Floats]) -> Floats:
    """How far the typical step of each run of so many steps is from that of all, as a share of it."""
    misses: Floats = np.abs(average(sliding_window_view(lengths, count), axis=1) / max(typical, 1.0) - 1)
    return misses
