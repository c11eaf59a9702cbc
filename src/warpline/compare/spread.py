"""Whether two sets of runs differ: the ratio of their step times with its interval, and the verdict.

Two runs of one program differ by more than their steps tell, and each part of a step does so in its own way. The
device's own work takes nearly the same time again. Copies from and to the host depend on where its memory lies. The
time in which the device waits for the CPU differs most, because hosts are noisy. Where the CPU runs ahead, nothing
shows of it until it is slower than the device. So each part has a spread between runs, measured where there are
several, drawn towards what is usual where there are few. A step is their sum, or the CPU's time if that is longer, and
the interval of the ratio comes from drawing them again and again. How slow the host was shows in its kernel launches:
so the CPU's time is that of one host, which is as slow for A as for B. A run that was disturbed is an outlier,
so the middle half of the runs counts. Doubt within a run, from a bootstrap of blocks of consecutive steps, is added.

Where the CPU's part leaves the step open, the device's own work decides, if it is most of the step. Each of the two
looks has half of the false alarms. docs/noise.md has the measurements.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import Literal

import numpy as np
from msgspec import Struct

from warpline.compare.typical_step import MIDDLE, MIN_STEPS
from warpline.estimate import Estimate
from warpline.trace.arrays import Floats, Int64s

Verdict = Literal["faster", "slower", "same", "inconclusive"]
Judged = Literal["step", "stopwatch", "work", "structure", "busy"]

DRAWS, RESAMPLES = 20_000, 2_000
FALSE_ALARM = 0.01
"""How often two runs of one program may be called slower (and as often faster)."""
STEP_FALSE_ALARM, WORK_FALSE_ALARM = 2 * FALSE_ALARM / 3, FALSE_ALARM / 3
"""The look at the step and that at the device's work share them."""
STRUCTURE_FALSE_ALARM = FALSE_ALARM / 3
"""Of the look at the operations that differ. Two runs of one program have none, unless its steps vary."""
BUSY_SPREAD, COPY_SPREAD, IDLE_SPREAD, HOST_SPREAD = 0.02, 0.1, 0.3, 0.3
"""Usual relative difference between runs of one program: of the device's own work, of copies from and to the host, of
the time in which the device waits, and of the CPU's time for a step."""
PACED_SPREAD = 0.1
"""Likewise of the CPU's time for a step, with the host's speed taken out."""
PRIOR_RUNS = 4
"""What is usual counts as much as this many runs."""
MIN_WORK_SHARE = 0.5
"""The device's own work decides if it is at least this share of the step: where the device mostly waits, the CPU sets
the pace, and more work may be hidden."""
EXACT_STEPS = 20
"""Up to so many steps on a side the rank test counts all orders."""
MORE_RUNS: tuple[int, ...] = (1, 2, 3, 5, 8, 12, 20, 40)


class RunTime(Struct, frozen=True):
    """The step of one run."""

    work_ns: float
    """The device's own work: kernels, memsets, and copies on the device."""
    idle_ns: float
    lengths_ns: Int64s
    """Of every warm step."""
    copies_ns: float = 0.0
    """Copies from and to the host during which nothing else runs."""
    ahead_ns: float = 0.0
    """The CPU's time for a step, if it runs ahead of the device; else 0."""
    host: float | None = None
    """How slow the host was, as the logarithm of a ratio to the other runs of both sides; None if unknown."""


Side = tuple[RunTime, ...]


class Difference(Struct, frozen=True):
    """The ratio of B to A, and what follows from it."""

    verdict: Verdict
    judged_by: Judged
    """Whether the verdict is of the recorded step or that of the stopwatch, or of the device's work because it is
    open."""
    ratio: Estimate
    work_ratio: Estimate
    """Likewise of the device's own work alone."""
    p_value: float | None
    """Of the rank test between all steps of A and of B; None with fewer than four on a side."""
    more_runs: int | None
    """Runs to add on each side until the answer is likely; None where it is there or they would not help."""
    by_work: Verdict = "inconclusive"
    """What the device's work says by itself; inconclusive where it is too small a part of the step."""
    timed: Difference | None = None
    """The same of the steps without the profiler, where both sides were timed: then the verdict is theirs."""


def difference(a: Side, b: Side, least_effect: float, whole_spread: float | None = None) -> Difference:
    """Compare two sides; `least_effect` is the smallest change that matters.

    If `whole_spread` is given, it is the usual difference between runs of steps that are not divided into parts: all of
    a step is its `work_ns` then, and nothing is said of the device's work.
    """
    from scipy.stats import mannwhitneyu  # noqa: PLC0415 - loads when it is used

    doubts = _Doubts.of(a, b, whole_spread)
    steps = [np.concatenate([run.lengths_ns for run in side]) for side in (a, b)]
    enough = min(len(lengths) for lengths in steps) >= MIN_STEPS
    # With ties and few steps SciPy would take the normal approximation, which never becomes small.
    method = "exact" if max(map(len, steps)) <= EXACT_STEPS else "auto"
    p_value = float(mannwhitneyu(*steps, method=method).pvalue) if enough else None
    apart = p_value is None or p_value <= max(FALSE_ALARM, _smallest_p_value(*map(len, steps)))
    ratio, work = doubts.ratios(len(a), len(b))
    by_work = doubts.by_work(work, least_effect)
    verdict, judged_by = doubts.judge(ratio, by_work, least_effect, apart)
    if are_equal(a, b):
        verdict, judged_by, ratio, work = "same", "step", Estimate(1.0, 1.0, 1.0), Estimate(1.0, 1.0, 1.0)
    more = None
    if verdict == "inconclusive":
        runs = min(len(a), len(b))
        later = ((more, doubts.ratios(len(a) + more, len(b) + more)) for more in MORE_RUNS)
        settled = (
            more
            for more, (step, its_work) in later
            if doubts.judge(
                step, doubts.by_work(its_work, least_effect), least_effect, _will_be_apart(p_value, 1 + more / runs)
            )[0]
            != "inconclusive"
        )
        more = next(settled, None)
    return Difference(verdict, judged_by, ratio, work, p_value, more, by_work)


Parts = tuple[float, float, float, float]
"""Of work, copies, idle time, and the CPU's time if it runs ahead."""


class _Doubts(Struct, frozen=True):
    """Logarithms of the parts of both sides, their variance between runs, and the variance within a run."""

    centres: tuple[Parts, Parts]
    """Of A and of B."""
    between: Parts
    freedom: float
    within: tuple[float, float]
    """Of A and B."""
    shared: float
    """Variance between runs of the host's speed, where it is taken out of the CPU's times: it is the same for both."""
    in_parts: bool

    @classmethod
    def of(cls, a: Side, b: Side, whole_spread: float | None) -> _Doubts:
        (centre_a, variance_a, freedom_a), (centre_b, variance_b, freedom_b) = (middle(_logs(side)) for side in (a, b))
        freedom = PRIOR_RUNS + freedom_a + freedom_b
        hosts = np.array([run.host for run in (*a, *b) if run.host is not None])
        work_spread = BUSY_SPREAD if whole_spread is None else whole_spread
        usual = np.array([work_spread, COPY_SPREAD, IDLE_SPREAD, PACED_SPREAD if len(hosts) else HOST_SPREAD]) ** 2
        shared = (PRIOR_RUNS * HOST_SPREAD**2 + float(hosts @ hosts)) / (PRIOR_RUNS + len(hosts) - 1)
        between = (PRIOR_RUNS * usual + freedom_a * variance_a + freedom_b * variance_b) / freedom
        within = [float(np.mean([_within(tuple(run.lengths_ns.tolist())) for run in side])) for side in (a, b)]
        centres, spread = (_four(centre_a), _four(centre_b)), (within[0], within[1])
        shared = shared if len(hosts) else 0.0
        return cls(centres, _four(between), freedom, spread, shared, whole_spread is None)

    def ratios(self, runs_a: int, runs_b: int) -> tuple[Estimate, Estimate]:
        """The ratio of the steps and that of the work, with so many runs on each side."""
        steps, works = [], []
        spreads = np.sqrt([*self.between, 0.0])[:, None]
        noises = [drawn / math.sqrt(runs) for drawn, runs in zip(_draws(self.freedom), (runs_a, runs_b), strict=True)]
        # Where the usual host is slower than those of the runs, the device waits longer, too.
        slow = (runs_a * noises[0][2] + runs_b * noises[1][2]) * math.sqrt(self.shared) / (runs_a + runs_b)
        for noise, centre, within in zip(noises, self.centres, self.within, strict=True):
            logs = np.array(centre)[:, None] + (noise * spreads)[:4]
            logs[3] += slow
            work, copies, idle, ahead = np.exp(np.minimum(logs, 700.0))
            steps.append(np.maximum(work + copies + idle, ahead) * np.exp(noise[4] * math.sqrt(within)))
            works.append(work)
        expected = [sum(map(math.exp, centre[:3])) for centre in self.centres]
        return (
            _estimate(steps[1] / steps[0], expected[1] / expected[0], STEP_FALSE_ALARM),
            _estimate(works[1] / works[0], math.exp(self.centres[1][0] - self.centres[0][0]), WORK_FALSE_ALARM),
        )

    def judge(
        self, step: Estimate, by_work: Verdict, least_effect: float, apart: bool
    ) -> tuple[Verdict, Literal["step", "work"]]:
        """The verdict of the step or, where that is open, of the work. `apart`: whether the steps of the two sides
        differ by the rank test."""
        verdict = verdict_of(step, least_effect)
        if verdict in {"faster", "slower"} and not apart:
            verdict = "inconclusive"
        return (by_work, "work") if verdict == "inconclusive" and by_work != verdict else (verdict, "step")

    def by_work(self, work: Estimate, least_effect: float) -> Verdict:
        """Whether the work makes the step faster or slower, if it is most of the step."""
        shares = [math.exp(centre[0]) / sum(map(math.exp, centre[:3])) for centre in self.centres]
        if min(shares) < MIN_WORK_SHARE or not self.in_parts:
            return "inconclusive"
        low, expected, high = (1 + shares[0] * (ratio - 1) for ratio in (work.low, work.expected, work.high))
        verdict = verdict_of(Estimate(low, expected, high), least_effect)
        return verdict if verdict in {"faster", "slower"} else "inconclusive"


@lru_cache(maxsize=2)
def _draws(freedom: float) -> tuple[Floats, Floats]:
    """Noise of each part and within a run, for A and for B: the same however many runs are asked about."""
    draw = np.random.default_rng(0)
    return draw.standard_t(freedom, (5, DRAWS)), draw.standard_t(freedom, (5, DRAWS))


def _logs(side: Side) -> Floats:
    parts = np.array([(run.work_ns, run.copies_ns, run.idle_ns, run.ahead_ns) for run in side])
    ahead = parts[:, 3]
    if ahead.any():  # in a run in which the CPU did not run ahead, the step took the CPU as long
        parts[:, 3] = np.where(ahead > 0, ahead, parts[:, :3].sum(axis=1))
    logs: Floats = np.log(np.maximum(parts, 1.0))
    logs[:, 3] = np.maximum(logs[:, 3] - [run.host or 0.0 for run in side], 0.0)
    return logs


def _four(values: Floats) -> Parts:
    first, second, third, fourth = values.tolist()
    return first, second, third, fourth


def middle(logs: Floats) -> tuple[Floats, Floats, int]:
    """Mean of the middle half of the runs, the variance that one run adds to it, and its degrees of freedom.

    A trimmed mean with the winsorised variance (Yuen, Biometrika 61, 1974); of fewer than four runs, the mean.
    """
    runs = len(logs)
    cut = math.floor(MIDDLE[0] * runs)
    ordered, left = np.sort(logs, axis=0), runs - 2 * cut
    centre = ordered[cut : runs - cut].mean(axis=0)
    if left < 2:
        return centre, np.zeros(logs.shape[1]), 0
    winsorised = np.clip(logs, ordered[cut], ordered[runs - cut - 1]).var(axis=0, ddof=1)
    return centre, winsorised * runs * (runs - 1) / (left * (left - 1)), left - 1


def _estimate(draws: Floats, expected: float, tail: float) -> Estimate:
    """With the share of draws `tail` beyond each end."""
    low, high = np.quantile(draws, [tail, 1 - tail])
    return Estimate(min(float(low), expected), expected, max(float(high), expected))


def are_equal(a: Side, b: Side) -> bool:
    """Whether both sides are the same recordings, some perhaps given more than once."""
    return all(any(_is_same(run, other) for other in there) for here, there in ((a, b), (b, a)) for run in here)


def _is_same(one: RunTime, other: RunTime) -> bool:
    return (
        np.array_equal(one.lengths_ns, other.lengths_ns)
        and math.isclose(one.work_ns, other.work_ns)
        and math.isclose(one.idle_ns, other.idle_ns)
    )


def _smallest_p_value(left: int, right: int) -> float:
    """What the rank test gives when one side lies wholly below the other; with few steps it is not small."""
    return 2 / math.comb(left + right, left)


def _will_be_apart(p_value: float | None, times: float) -> bool:
    """Whether the rank test would find so many times as many steps apart, if they differ as these do: its statistic
    grows with the square root of their number."""
    if p_value is None or p_value <= FALSE_ALARM:
        return True
    usual = NormalDist()
    return usual.inv_cdf(1 - p_value / 2) * math.sqrt(times) >= usual.inv_cdf(1 - FALSE_ALARM / 2)


def verdict_of(ratio: Estimate, least_effect: float) -> Verdict:
    """`same` is known to be within the least effect; a change is known to be one, and not known to be so small."""
    if ratio.high < 1 + least_effect and ratio.low > 1 - least_effect:
        return "same"
    if ratio.low > 1:
        return "slower"
    return "faster" if ratio.high < 1 else "inconclusive"


@lru_cache(maxsize=1024)
def _within(run: tuple[int, ...]) -> float:
    """Variance of the logarithm of the typical step, by a bootstrap of blocks of consecutive steps."""
    lengths = np.array(run, np.float64)
    if len(lengths) < MIN_STEPS:
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
    if third < MIN_STEPS:
        return None
    change = float(np.median(lengths[-third:]) / max(np.median(lengths[:third]), 1.0) - 1)
    if abs(change) < least_effect:
        return None
    return change if spearmanr(np.arange(len(lengths)), lengths).pvalue < FALSE_ALARM else None
