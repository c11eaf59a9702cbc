"""How much faster a variant is than the baseline, with its range, from windows of the same steps.

A process differs from another one of the same program by more than its windows tell (where its memory lies, which
cores it gets), so a range holds both: the spread of windows within a process, and the spread between processes. The
latter is measured on the baselines of the session, drawn towards what is usual, as `compare.spread` does. The two have
their own degrees of freedom (Satterthwaite, Biometrics Bulletin 2, 1946). The spread of windows is known better from
all variants than from one: each is drawn towards that of all (as in Smyth, Stat. Appl. Genet. Mol. Biol. 3, 2004). The
ranges of all rows hold together with CONFIDENCE, at each of the looks after which the measurement may stop: with more
fixes tried, each is wider (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

import numpy as np
from msgspec import Struct
from scipy.stats import t as student

from warpline.compare.spread import PRIOR_RUNS, Verdict, middle
from warpline.estimate import CLEAR_GAIN, NOTICEABLE_GAIN, Estimate

CONFIDENCE = 0.95
"""That the ranges of all rows of a session hold."""
LOOKS = (6, 12, 24, 48)
"""Rounds after which a variant that is decided is left out of the next."""
PRIOR_WINDOWS = 12
"""What all variants say of the spread of windows counts as much as this many windows of one."""
GPU_SPREAD, CPU_SPREAD = 0.015, 0.03
"""Usual relative difference between processes of one program whose windows alternate. On an H200, 22 processes of a
U-Net differed by less than 1.5 %, and 22 of a PPO program that the CPU bounds by 0 to 4 % (docs/try.md)."""


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
    found = [
        centre
        for process in processes
        if process.name == name and (centre := _against(baseline, process, processes)) is not None
    ]
    if not found:
        return None
    everyone = [
        centre
        for process in processes
        if process.name != baseline and (centre := _against(baseline, process, processes)) is not None
    ]
    usual = _usual_variance(everyone)
    shares = [
        1 + 1 / sum(one.name == baseline and one.group == process.group for one in processes)
        for process in processes
        if process.name == name and _against(baseline, process, processes) is not None
    ]
    spread, freedom = between_processes(baseline, processes, on_gpu)
    between = spread**2 * fmean(shares) / len(found)
    within = fmean(one.drawn_to(usual) for one in found) / len(found)
    within_freedom = sum(one.freedom + PRIOR_WINDOWS for one in found)
    effective = (between + within) ** 2 / (between**2 / freedom + within**2 / within_freedom)
    tail = (1 - CONFIDENCE) / (2 * max(1, rows) * len(LOOKS))
    half = float(student.ppf(1 - tail, effective)) * math.sqrt(between + within)
    value = fmean(one.value for one in found)
    return Estimate(math.exp(value - half), math.exp(value), math.exp(value + half))


def between_processes(baseline: str, processes: Windows, on_gpu: bool) -> tuple[float, float]:
    """How much processes of one program differ, as a share, and the degrees of freedom of that number."""
    squares, freedom = 0.0, 0
    bases = [one for one in processes if one.name == baseline]
    for group in {one.group for one in bases}:
        members = [one for one in bases if one.group == group]
        centres = [
            _centre([math.log(step) - fmean(map(math.log, known)) for step, known in _windows(one, members)])
            for one in members
        ]
        offsets = [one for one in centres if one is not None]
        if len(offsets) > 1:
            # Processes that are alike differ by what their windows do.
            squares += sum(one.value**2 - one.variance for one in offsets)
            freedom += len(offsets) - 1
    usual = GPU_SPREAD if on_gpu else CPU_SPREAD
    total = PRIOR_RUNS + freedom
    return math.sqrt((PRIOR_RUNS * usual**2 + max(0.0, squares)) / total), total


class _Centre(Struct, frozen=True):
    """The middle of some values, the variance of that, and its degrees of freedom."""

    value: float
    variance: float
    freedom: int
    windows: int

    def drawn_to(self, usual: float) -> float:
        """The variance, drawn towards what one window usually adds."""
        known = self.freedom * self.variance + PRIOR_WINDOWS * usual / self.windows
        return known / (self.freedom + PRIOR_WINDOWS)


def _usual_variance(centres: Sequence[_Centre]) -> float:
    """What one window adds to the variance, over all processes."""
    freedom = sum(one.freedom for one in centres)
    return sum(one.freedom * one.variance * one.windows for one in centres) / freedom if freedom else 0.0


def _against(baseline: str, process: MeasuredProcess, processes: Windows) -> _Centre | None:
    """The logarithm of the baselines' step over the process's, from the windows that all of them have."""
    bases = [one for one in processes if one.name == baseline and one.group == process.group]
    return _centre([fmean(math.log(base / step) for base in known) for step, known in _windows(process, bases)])


def _centre(values: Sequence[float]) -> _Centre | None:
    """The mean of the middle half: a disturbed window is an outlier."""
    if not values:
        return None
    centre, variance, freedom = middle(np.array(values)[:, None])
    return _Centre(float(centre[0]), float(variance[0]) / len(values), freedom, len(values))


def _windows(process: MeasuredProcess, bases: Windows) -> list[tuple[float, list[float]]]:
    """The step of each window of a process, with those of the same window of the others."""
    found = []
    for place, step in enumerate(process.steps_s):
        known = [base.steps_s[place] for base in bases if place < len(base.steps_s)]
        times = [time for time in known if time is not None]
        if step is not None and len(times) == len(bases) and times:
            found.append((step, times))
    return found


def verdict_of_gain(gain: Estimate) -> Verdict:
    """`same`: the range lies within what can hardly be told from noise."""
    if gain.low > 1 / CLEAR_GAIN and gain.high < CLEAR_GAIN and gain.low < 1 < gain.high:
        return "same"
    if gain.low > 1:
        return "faster" if gain.expected >= NOTICEABLE_GAIN else "same"
    if gain.high < 1:
        return "slower" if gain.expected <= 1 / NOTICEABLE_GAIN else "same"
    return "inconclusive"
