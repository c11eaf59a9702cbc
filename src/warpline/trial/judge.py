"""How much faster a variant is than the baseline, with its range, from rounds of the same steps; and the verdict.

A process differs from another one of the same program by more than its rounds tell (where its memory lies, which
cores it gets), so a range holds both: the spread of rounds within a process, and the spread between processes. The
latter is measured on the baselines of the session, drawn towards what is usual, as `compare.spread` does. The two have
their own degrees of freedom (Satterthwaite, Biometrics Bulletin 2, 1946). The spread of rounds is known better from
all variants than from one: each is drawn towards that of all (as in Smyth, Stat. Appl. Genet. Mol. Biol. 3, 2004).

Many fixes are tried, and each is looked at several times; both make false alarms. Three rules account for them:
- Within a group of processes, only what is beyond doubt ends early (Haybittle, Br. J. Radiol. 44, 1971; Peto et al.,
  Br. J. Cancer 34, 1976), so that these looks cost next to nothing.
- A group is looked at once, and there are at most MAX_GROUPS of them: each look has less than 5 % for each end
  (Pocock, Biometrika 64, 1977).
- What is chosen because it looks faster is judged by fresh processes alone, which did not choose it (Cox, Biometrika
  62, 1975). Only these share the 5 %: with two of them, each has half.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median, variance
from typing import Literal

import numpy as np
from msgspec import Struct
from scipy.stats import chi2
from scipy.stats import t as student

from warpline.compare.spread import PRIOR_RUNS, middle
from warpline.estimate import NOTICEABLE_GAIN, Estimate

Verdict = Literal["faster", "slower", "no_gain", "inconclusive"]

MAX_GROUPS = 4
"""Groups in which a variant is measured at most."""
TAIL = 0.0194
"""Beyond each end of a range, at each look: 5 % over all MAX_GROUPS looks (Pocock 1977, for 10 % on both sides)."""
EARLY_TAIL = 0.001
"""Likewise before the end of a group, as Haybittle and Peto have it."""
WORTH_HAVING = 1.03
"""A smaller gain decides nothing: a range that lies below is a verdict."""
MIN_ROUNDS = 3
"""Of a process: fewer do not show how far rounds differ."""
MIN_TRIMMED = 8
"""Of fewer rounds the middle half is too few to show how far they differ."""
PRIOR_ROUNDS = 12
"""What all variants say of the spread of rounds counts as much as this many rounds of one."""
GPU_SPREAD, CPU_SPREAD = 0.01, 0.03
"""Usual relative difference between processes of one program whose rounds alternate. On an H200 it was 0.1 % for a
language model, at most 0.6 % for a diffusion sampler, and not to be told from 0 for a U-Net; two processes of a PPO
program that the CPU bounds differed by 22 % in every round once (faults/LOG.md), which its baselines show."""


class MeasuredProcess(Struct, frozen=True):
    """The rounds of one process; the same place in two processes of a group is the same steps."""

    name: str
    group: int
    """Processes of one group were measured within the same minutes."""
    steps_s: tuple[float | None, ...]
    """Seconds of a step in each round; None where something was compiled in it."""


Processes = Sequence[MeasuredProcess]


class MeasuredGain(Struct, frozen=True):
    """The logarithm of the speed-up, with its standard error and degrees of freedom."""

    value: float
    error: float
    freedom: float

    def estimate(self, tail: float = TAIL) -> Estimate:
        """The speed-up; `tail` lies beyond each end."""
        half = float(student.ppf(1 - tail, self.freedom)) * self.error
        return Estimate(math.exp(self.value - half), math.exp(self.value), math.exp(self.value + half))

    def verdict(self, tail: float = TAIL, claims: int = 1) -> Verdict:
        """What is known of it. A claim of a difference is one of so many, which share the tail."""
        claimed = self.estimate(tail / claims)
        if claimed.low > 1 and claimed.expected >= NOTICEABLE_GAIN:
            return "faster"
        if claimed.high < 1 and claimed.expected <= 1 / NOTICEABLE_GAIN:
            return "slower"
        return "no_gain" if self.estimate(tail).high < WORTH_HAVING else "inconclusive"


def gain_of(name: str, baseline: str, processes: Processes, on_gpu: bool) -> MeasuredGain | None:
    """The baseline's step over the variant's; None if both have fewer than MIN_ROUNDS."""
    against = [(one, _against(baseline, one, processes)) for one in processes if one.name != baseline]
    everyone = [centre for _, centre in against if centre is not None]
    found = [(one, centre) for one, centre in against if one.name == name and centre is not None]
    if not found:
        return None
    usual = _usual_variance(everyone)
    centres = [centre for _, centre in found]
    shares = [1 + 1 / sum(base.name == baseline and base.group == one.group for base in processes) for one, _ in found]
    spread, freedom = between_processes(baseline, processes, on_gpu)
    between = spread**2 * fmean(shares) / len(found)
    within = fmean(one.drawn_to(usual) for one in centres) / len(found)
    within_freedom = sum(one.freedom + PRIOR_ROUNDS for one in centres)
    effective = (between + within) ** 2 / (between**2 / freedom + within**2 / within_freedom)
    return MeasuredGain(fmean(one.value for one in centres), math.sqrt(between + within), effective)


def between_processes(baseline: str, processes: Processes, on_gpu: bool) -> tuple[float, float]:
    """How much processes of one program differ, as a share, and the degrees of freedom of that number."""
    squares, freedom = 0.0, 0
    bases = [one for one in processes if one.name == baseline]
    for group in {one.group for one in bases}:
        members = [one for one in bases if one.group == group]
        centres = [
            _centre([math.log(step) - fmean(map(math.log, known)) for step, known in _rounds(one, members)])
            for one in members
        ]
        offsets = [one for one in centres if one is not None]
        if len(offsets) > 1:
            # Processes that are alike differ by what their rounds do.
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
    rounds: int

    def drawn_to(self, usual: float) -> float:
        """The variance, drawn towards what one round usually adds."""
        known = self.freedom * self.variance + PRIOR_ROUNDS * usual / self.rounds
        return known / (self.freedom + PRIOR_ROUNDS)


def _usual_variance(centres: Sequence[_Centre]) -> float:
    """What one round adds to the variance: the median over all processes, because a variant that the host disturbs
    says nothing of the others. The median of an estimated variance lies below its mean (chi-squared)."""
    known = [
        one.variance * one.rounds * one.freedom / float(chi2.median(one.freedom)) for one in centres if one.freedom
    ]
    return median(known) if known else 0.0


def _against(baseline: str, process: MeasuredProcess, processes: Processes) -> _Centre | None:
    """The logarithm of the baselines' step over the process's, from the rounds that all of them have."""
    bases = [one for one in processes if one.name == baseline and one.group == process.group]
    found = _rounds(process, bases)
    if len(found) < MIN_ROUNDS:
        return None
    return _centre([fmean(math.log(base / step) for base in known) for step, known in found])


def _centre(values: Sequence[float]) -> _Centre | None:
    """The mean of the middle half, because a disturbed round is an outlier; of few, with the variance of all."""
    if not values:
        return None
    number = len(values)
    centre, spread, freedom = middle(np.array(values)[:, None])
    if number >= MIN_TRIMMED:
        return _Centre(float(centre[0]), float(spread[0]) / number, freedom, number)
    return _Centre(float(centre[0]), variance(values) / number if number > 1 else 0.0, number - 1, number)


def _rounds(process: MeasuredProcess, bases: Processes) -> list[tuple[float, list[float]]]:
    """The step of each round of a process, with those of the same round of the others."""
    found = []
    for place, step in enumerate(process.steps_s):
        known = [base.steps_s[place] for base in bases if place < len(base.steps_s)]
        times = [time for time in known if time is not None]
        if step is not None and len(times) == len(bases) and times:
            found.append((step, times))
    return found
