"""Whether two sets of runs differ: the ratio of their step times with its interval, and the verdict.

Two runs of one program differ by more than their steps tell. The device's work takes nearly the same time again; the
time in which it waits for the CPU does not, because hosts are noisy. So the two are judged apart: each has a spread
between runs, measured where there are several, drawn towards what is usual where there are few. The step is their sum,
and the interval of the ratio comes from drawing both again and again. Doubt within a run, from a bootstrap of blocks of
consecutive steps, is added. docs/commands/compare.md has the measurements.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from warpline.compare.typical_step import FEW_STEPS, MIDDLE
from warpline.estimate import Estimate
from warpline.trace.columns import Floats, Int64s

Verdict = Literal["faster", "slower", "same", "inconclusive"]

DRAWS, RESAMPLES = 20_000, 2_000
FALSE_ALARM = 0.01
"""How often two runs of one program may be called slower (and as often faster)."""
BUSY_SPREAD, IDLE_SPREAD = 0.02, 0.3
"""Usual relative difference between runs of one program: of the device's work, and of the time in which it waits."""
PRIOR_RUNS = 4
"""What is usual counts as much as this many runs."""
EXACT_STEPS = 20
"""Up to so many steps on a side the rank test counts all orders."""
MORE_RUNS: tuple[int, ...] = (1, 2, 3, 5, 8, 12, 20, 40)


@dataclass(frozen=True, slots=True)
class RunTime:
    """The step of one run."""

    busy_ns: float
    idle_ns: float
    lengths_ns: Int64s
    """Of every warm step."""


Side = tuple[RunTime, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """The ratio of B to A, and what follows from it."""

    verdict: Verdict
    ratio: Estimate
    busy_ratio: Estimate
    """Likewise of the device's work alone."""
    p_value: float | None
    """Of the rank test between all steps of A and of B; None with fewer than four on a side."""
    more_runs: int | None
    """Runs to add on each side until the answer is likely; None where it is there or they would not help."""


def difference(a: Side, b: Side, least_effect: float) -> Difference:
    """Compare two sides; `least_effect` is the smallest change that matters."""
    from scipy.stats import mannwhitneyu  # noqa: PLC0415 - loads when it is used

    doubts = _Doubts.of(a, b)
    ratio, busy_ratio = doubts.ratios(len(a), len(b))
    steps = [np.concatenate([run.lengths_ns for run in side]) for side in (a, b)]
    enough = min(len(lengths) for lengths in steps) >= FEW_STEPS
    # With ties and few steps SciPy would take the normal approximation, which never becomes small.
    method = "exact" if max(map(len, steps)) <= EXACT_STEPS else "auto"
    p_value = float(mannwhitneyu(*steps, method=method).pvalue) if enough else None
    apart = p_value is None or p_value <= max(FALSE_ALARM, _smallest_p_value(*map(len, steps)))
    verdict = "same" if _are_equal(a, b) else _verdict(ratio, least_effect, apart)
    more = None
    if verdict == "inconclusive":
        later = ((more, doubts.ratios(len(a) + more, len(b) + more)[0]) for more in MORE_RUNS)
        more = next((more for more, then in later if _verdict(then, least_effect, apart=True) != "inconclusive"), None)
    return Difference(verdict, ratio, busy_ratio, p_value, more)


@dataclass(frozen=True, slots=True)
class _Doubts:
    """Logarithms of both parts of both sides, their variance between runs, and the variance within a run."""

    centres: tuple[tuple[float, float], tuple[float, float]]
    """Busy and idle of A, and of B."""
    between: tuple[float, float]
    """Of busy and idle."""
    freedom: float
    within: tuple[float, float]
    """Of A and B."""

    @classmethod
    def of(cls, a: Side, b: Side) -> _Doubts:
        logs = [np.log([[max(run.busy_ns, 1.0), max(run.idle_ns, 1.0)] for run in side]) for side in (a, b)]
        freedom = PRIOR_RUNS + len(a) + len(b) - 2
        squares = sum(((own - own.mean(axis=0)) ** 2).sum(axis=0) for own in logs)
        usual = np.array([BUSY_SPREAD, IDLE_SPREAD]) ** 2
        busy, idle = (PRIOR_RUNS * usual + squares) / freedom
        centres = tuple((float(own[:, 0].mean()), float(own[:, 1].mean())) for own in logs)
        within = tuple(float(np.mean([_within(run.lengths_ns) for run in side])) for side in (a, b))
        return cls((centres[0], centres[1]), (float(busy), float(idle)), freedom, (within[0], within[1]))

    def ratios(self, runs_a: int, runs_b: int) -> tuple[Estimate, Estimate]:
        """The ratio of the steps and that of the work, with so many runs on each side."""
        steps, works = [], []
        sides = zip(_draws(self.freedom), self.centres, self.within, (runs_a, runs_b), strict=True)
        for drawn, (busy, idle), within, runs in sides:
            noise = drawn / math.sqrt(runs)
            work = np.exp(busy + noise[0] * math.sqrt(self.between[0]))
            wait = np.exp(np.minimum(idle + noise[1] * math.sqrt(self.between[1]), 700.0))
            steps.append((work + wait) * np.exp(noise[2] * math.sqrt(within)))
            works.append(work)
        expected = [math.exp(busy) + math.exp(idle) for busy, idle in self.centres]
        return (
            _estimate(steps[1] / steps[0], expected[1] / expected[0]),
            _estimate(works[1] / works[0], math.exp(self.centres[1][0] - self.centres[0][0])),
        )


@lru_cache(maxsize=2)
def _draws(freedom: float) -> tuple[Floats, Floats]:
    """Noise of work, waits and within a run, for A and for B: the same however many runs are asked about."""
    draw = np.random.default_rng(0)
    return draw.standard_t(freedom, (3, DRAWS)), draw.standard_t(freedom, (3, DRAWS))


def _estimate(draws: Floats, expected: float) -> Estimate:
    low, high = np.quantile(draws, [FALSE_ALARM, 1 - FALSE_ALARM])
    return Estimate(min(float(low), expected), expected, max(float(high), expected))


def _are_equal(a: Side, b: Side) -> bool:
    """Whether it is the same recording twice."""
    both = zip(a, b, strict=False)
    return len(a) == len(b) and all(np.array_equal(mine.lengths_ns, other.lengths_ns) for mine, other in both)


def _smallest_p_value(left: int, right: int) -> float:
    """What the rank test gives when one side lies wholly below the other; with few steps it is not small."""
    return 2 / math.comb(left + right, left)


def _verdict(ratio: Estimate, least_effect: float, apart: bool) -> Verdict:
    """`apart`: whether the steps of the two sides differ by the rank test."""
    if apart and ratio.low > 1 and ratio.expected >= 1 + least_effect:
        return "slower"
    if apart and ratio.high < 1 and ratio.expected <= 1 - least_effect:
        return "faster"
    if ratio.high < 1 + least_effect and ratio.low > 1 - least_effect:
        return "same"
    return "inconclusive"


def _within(run: Int64s) -> float:
    """Variance of the logarithm of the typical step, by a bootstrap of blocks of consecutive steps."""
    lengths = run.astype(np.float64)
    if len(lengths) < FEW_STEPS:
        return 0.0
    block = max(1, round(len(lengths) ** (1 / 3)))
    draw = np.random.default_rng(0)
    firsts = draw.integers(0, len(lengths) - block + 1, (RESAMPLES, -(-len(lengths) // block)))
    places = (firsts[..., None] + np.arange(block)).reshape(RESAMPLES, -1)[:, : len(lengths)]
    samples = np.sort(lengths[places], axis=1)
    low, high = (round(share * len(lengths)) for share in MIDDLE)
    return float(np.log(np.maximum(samples[:, low : max(high, low + 1)].mean(axis=1), 1.0)).var())


def drift(lengths: Floats, least_effect: float) -> float | None:
    """How much longer the steps became over the run, as a share; None if they did not."""
    from scipy.stats import spearmanr  # noqa: PLC0415 - loads when it is used

    third = len(lengths) // 3
    if third < FEW_STEPS:
        return None
    change = float(np.median(lengths[-third:]) / max(np.median(lengths[:third]), 1.0) - 1)
    if abs(change) < least_effect:
        return None
    return change if spearmanr(np.arange(len(lengths)), lengths).pvalue < FALSE_ALARM else None
