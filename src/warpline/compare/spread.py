"""Whether two sets of runs differ: the ratio of their step times with its interval, and the verdict.

Steps of one run are not independent, and two runs of one program differ by more than their steps tell: clocks, memory
and the host are not the same again. So the doubt has two parts. Within a run it comes from a bootstrap of blocks of
consecutive steps. Between runs it comes from the runs themselves where there are several, drawn towards what was
measured for programs of this kind where there are few. docs/compare.md has the measurements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from warpline.compare.typical_step import FEW_STEPS, MIDDLE
from warpline.estimate import Estimate
from warpline.trace.columns import Floats, Int64s

Verdict = Literal["faster", "slower", "same", "inconclusive"]

RESAMPLES = 2000
FALSE_ALARM = 0.01
"""How often two runs of one program may be called slower (and as often faster)."""
PRIOR_RUNS = 4
"""The spread that is expected between runs counts as much as this many runs."""
MOST_RUNS = 100


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison: its runs, each with its steps."""

    runs: tuple[Int64s, ...]

    @property
    def logs(self) -> Floats:
        """The logarithm of each run's typical step."""
        return np.array([math.log(max(middle_mean(run.astype(np.float64)), 1.0)) for run in self.runs])

    @property
    def within(self) -> float:
        """Variance of such a logarithm that the steps of the runs show."""
        return float(np.mean([_within(run) for run in self.runs]))


@dataclass(frozen=True, slots=True)
class Difference:
    """The ratio of B to A, and what follows from it."""

    verdict: Verdict
    ratio: Estimate
    p_value: float | None
    """Of the rank test between all steps of A and of B; None with fewer than four on a side."""
    more_runs: int | None
    """Runs to add on each side until the answer is likely; None where it is there or they would not help."""


def middle_mean(lengths: Floats) -> float:
    """Mean of the lengths between the quartiles."""
    if len(lengths) < FEW_STEPS:
        return float(lengths.mean())
    low, high = np.quantile(lengths, MIDDLE)
    return float(lengths[(lengths >= low) & (lengths <= high)].mean())


def difference(a: Side, b: Side, expected_spread: float, least_effect: float) -> Difference:
    """Compare two sides. `expected_spread` is the usual relative difference between two runs of such a program, and
    `least_effect` the smallest change that matters."""
    from scipy.stats import mannwhitneyu, t  # noqa: PLC0415 - loads when it is used

    own = [side.logs for side in (a, b)]
    freedom = sum(len(logs) - 1 for logs in own)
    squares = sum(float(((logs - logs.mean()) ** 2).sum()) for logs in own)
    between = (PRIOR_RUNS * expected_spread**2 + squares) / (PRIOR_RUNS + freedom)
    within = (a.within / len(a.runs)) + (b.within / len(b.runs))
    variance = between * (1 / len(a.runs) + 1 / len(b.runs)) + within
    quantile = float(t.ppf(1 - FALSE_ALARM, PRIOR_RUNS + freedom))
    centre, reach = own[1].mean() - own[0].mean(), quantile * math.sqrt(variance)
    ratio = Estimate(math.exp(centre - reach), math.exp(centre), math.exp(centre + reach))
    steps = [np.concatenate(side.runs) for side in (a, b)]
    enough = min(len(lengths) for lengths in steps) >= FEW_STEPS
    p_value = float(mannwhitneyu(*steps).pvalue) if enough else None
    verdict = "same" if _are_equal(a, b) else _verdict(ratio, least_effect, p_value)
    more = None
    if verdict == "inconclusive":
        more = _more_runs(abs(centre), between, (a.within + b.within) / 2, min(len(a.runs), len(b.runs)), least_effect)
    return Difference(verdict, ratio, p_value, more)


def _are_equal(a: Side, b: Side) -> bool:
    """Whether it is the same recording twice."""
    return len(a.runs) == len(b.runs) and all(map(np.array_equal, a.runs, b.runs))


def _verdict(ratio: Estimate, least_effect: float, p_value: float | None) -> Verdict:
    apart = p_value is None or p_value < FALSE_ALARM
    if apart and ratio.low > 1 and ratio.expected >= 1 + least_effect:
        return "slower"
    if apart and ratio.high < 1 and ratio.expected <= 1 - least_effect:
        return "faster"
    if ratio.high < 1 + least_effect and ratio.low > 1 - least_effect:
        return "same"
    return "inconclusive"


def _more_runs(distance: float, between: float, within: float, now: int, least_effect: float) -> int | None:
    """Runs to add on each side until the interval is so narrow that it lies on one side of 1, or inside the least
    effect; None if a hundred would not do it."""
    from scipy.stats import t  # noqa: PLC0415 - loads when it is used

    needed = max(distance, least_effect - distance, least_effect / 2)
    for runs in range(now + 1, MOST_RUNS):
        reach = float(t.ppf(1 - FALSE_ALARM, PRIOR_RUNS + 2 * (runs - 1))) * math.sqrt(2 * (between + within) / runs)
        if reach < needed:
            return runs - now
    return None


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
    trend: Sequence[float] = spearmanr(np.arange(len(lengths)), lengths)
    return change if abs(change) >= least_effect and trend[1] < FALSE_ALARM else None
