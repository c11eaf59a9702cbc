"""How much faster a variant is than the baseline, with its range, from windows of the same steps.

A process differs from another one of the same program by more than its windows tell (where its memory lies, which cores
it gets), so a range holds both: the spread of windows within a process, and the spread between processes. The latter is
measured on the baselines of the session, drawn towards what is usual, as `compare.spread` does. The ranges of all rows
hold together with CONFIDENCE: with more fixes tried, each is wider (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median

from msgspec import Struct
from scipy.stats import t as student

from warpline.compare.spread import PRIOR_RUNS, Verdict
from warpline.estimate import CLEAR_GAIN, NOTICEABLE_GAIN, Estimate

CONFIDENCE = 0.95
"""That the ranges of all rows of a session hold."""
GPU_SPREAD, CPU_SPREAD = 0.015, 0.03
"""Usual relative difference between processes of one program whose windows alternate."""
MEDIAN_VARIANCE = math.pi / 2
"""Variance of a median over that of the mean, of normal values."""


class MeasuredProcess(Struct, frozen=True):
    """The windows of one process; the same place in two processes of a group is the same steps."""

    name: str
    group: int
    """Processes of one group were measured within the same minutes."""
    steps_s: tuple[float | None, ...]
    """Seconds of a step in each window; None where something was compiled in it."""


Windows = Sequence[MeasuredProcess]


def gain_of(name: str, baseline: str, processes: Windows, rows: int, on_gpu: bool) -> Estimate | None:
    """The baseline's step over the variant's; None if no window of both exists."""
    differences: list[float] = []
    within: list[float] = []
    shares: list[float] = []
    for process in processes:
        if process.name != name:
            continue
        bases = [one for one in processes if one.name == baseline and one.group == process.group]
        logs = [fmean(math.log(base / step) for base in known) for step, known in _windows(process, bases)]
        if logs:
            centre = median(logs)
            differences.append(centre)
            within.append(MEDIAN_VARIANCE * _variance(logs, centre) / len(logs))
            shares.append(1 + 1 / len(bases))
    if not differences:
        return None
    spread, freedom = between_processes(baseline, processes, on_gpu)
    count = len(differences)
    variance = (spread**2 * fmean(shares) + fmean(within)) / count
    centre = fmean(differences)
    half = float(student.ppf(1 - (1 - CONFIDENCE) / (2 * max(1, rows)), freedom)) * math.sqrt(variance)
    return Estimate(math.exp(centre - half), math.exp(centre), math.exp(centre + half))


def between_processes(baseline: str, processes: Windows, on_gpu: bool) -> tuple[float, float]:
    """How much processes of one program differ, as a share, and the degrees of freedom of that number."""
    squares, freedom = 0.0, 0
    bases = [one for one in processes if one.name == baseline]
    for group in {one.group for one in bases}:
        members = [one for one in bases if one.group == group]
        offsets = [
            median(math.log(step / fmean(known)) for step, known in pairs)
            for one in members
            if (pairs := _windows(one, members))
        ]
        if len(offsets) > 1:
            squares += sum(offset**2 for offset in offsets)
            freedom += len(offsets) - 1
    usual = GPU_SPREAD if on_gpu else CPU_SPREAD
    total = PRIOR_RUNS + freedom
    return math.sqrt((PRIOR_RUNS * usual**2 + squares) / total), total


def _windows(process: MeasuredProcess, bases: Windows) -> list[tuple[float, list[float]]]:
    """The step of each window of a process, with those of the same window of the others."""
    found = []
    for place, step in enumerate(process.steps_s):
        known = [base.steps_s[place] for base in bases if place < len(base.steps_s)]
        times = [time for time in known if time is not None]
        if step is not None and len(times) == len(bases) and times:
            found.append((step, times))
    return found


def _variance(values: Sequence[float], centre: float) -> float:
    return sum((value - centre) ** 2 for value in values) / max(1, len(values) - 1)


def verdict_of_gain(gain: Estimate) -> Verdict:
    """`same`: the range lies within what can hardly be told from noise."""
    if gain.low > 1 / CLEAR_GAIN and gain.high < CLEAR_GAIN and gain.low < 1 < gain.high:
        return "same"
    if gain.low > 1:
        return "faster" if gain.expected >= NOTICEABLE_GAIN else "same"
    if gain.high < 1:
        return "slower" if gain.expected <= 1 / NOTICEABLE_GAIN else "same"
    return "inconclusive"
