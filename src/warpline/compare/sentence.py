"""The answer of a comparison in one sentence."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from warpline.compare.words import in_words, percent
from warpline.estimate import Estimate
from warpline.units import duration

if TYPE_CHECKING:
    from warpline.compare.comparison import Compared, Comparison

HIDDEN = 0.5
"""Below this share of the change without the profiler (and above its inverse) the recorded one is misleading."""


def sentence_of(found: Comparison) -> str:
    """The verdict with the times that it rests on; where both sides were timed, with the recorded ones beside them."""
    if not found.same_unit:
        return f"Not comparable: {_time(found.a)} and {_time(found.b)}."
    what = ("warm step" if found.cold_start else "step") if found.a.step.has_steps else "recording"
    times = f"{duration(found.a.step_ns)} → {duration(found.b.step_ns)}"
    if found.verdict == "not_comparable":
        return f"Not comparable: {times} a {what}."
    known = _known(found, f"{times} a {what}", found.ratio)
    if found.stopwatch_ratio is not None and found.a.stopwatch_ns is not None and found.b.stopwatch_ns is not None:
        bare = f"{duration(found.a.stopwatch_ns)} → {duration(found.b.stopwatch_ns)} a {what} without the profiler"
        recorded = f"recorded {times}, {_over_all_runs(found)}{percent(found.ratio.expected)}"
        hidden = _hidden(found, found.stopwatch_ratio)
        known = f"{_known(found, bare, found.stopwatch_ratio)}; {recorded}{hidden}"
    if found.judged_by == "work" and found.verdict in {"faster", "slower"}:
        work = f"The GPU's work is {found.verdict} in B: {in_words(found.work_ratio)}"
        return f"{work}; the step is inconclusive: {known}."
    if found.judged_by == "structure" and found.changed is not None:
        work = f"B is {found.verdict} by what it runs: {found.changed.in_words}, {in_words(found.changed.ratio)}"
        return f"{work}; the step alone is inconclusive: {known}."
    if found.verdict == "inconclusive":
        return f"Inconclusive: {known}."
    how = "as fast as" if found.verdict == "same" else f"{found.verdict} than"
    return f"B is {how} A: {known}."


def _known(found: Comparison, times: str, ratio: Estimate) -> str:
    over = _over_all_runs(found)
    return f"{times}{' in the median runs' if over else ''}, {over}{in_words(ratio)}"


def _over_all_runs(found: Comparison) -> str:
    return "over all runs " if max(found.a.runs, found.b.runs) > 1 else ""


def _hidden(found: Comparison, stopwatch: Estimate) -> str:
    """What the profiler does to the difference, if much, where the stopwatch has shown it."""
    if found.judged_by != "stopwatch" or found.verdict not in {"faster", "slower"}:
        return ""
    share = math.log(found.ratio.expected) / math.log(stopwatch.expected)
    what = "gain" if found.verdict == "faster" else "loss"
    if share < HIDDEN:
        return f": the profiler hides {'' if share < HIDDEN / 2 else 'more than half of '}the {what}"
    return f": the profiler makes the {what} look larger" if share > 1 / HIDDEN else ""


def _time(side: Compared) -> str:
    return f"{duration(side.step_ns)} {'a step' if side.step.has_steps else 'for the whole recording'}"
