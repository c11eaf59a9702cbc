"""Calibrates the ranges on the table of blind errors: normalised split-conformal prediction.

A score is an error, as the absolute logarithm of measured over predicted, less what the doubt about the host holds of
it, divided by the size that a scale expects of it from the replay's spread and the predicted gain. The scale that
divides errors of a suite is fitted without it. A quantile of the scores makes the constant: of a fix that has enough
cases, else of all fixes that have not. For the others it is the 80 % quantile. Few cases make a rough quantile, so that
of a fix is chosen by what it does: the one with which 81 % are held, as near as can be, in suites that are left out in
turn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from faults.blind_errors import WHATIF, BlindError
from faults.spreads import Replayed, Spreads
from warpline.estimate import Estimate
from warpline.replay.ranges import BareRange, Doubt, HalfWidth, Idle, doubt_of_gain, doubt_of_host, spread_of

LEVEL = 0.8
LEVELS = tuple(percent / 100 for percent in range(50, 96, 2))
"""Quantiles to choose from for a fix with enough cases."""
AIM = 0.81
"""Share that ranges of such a fix are to hold in suites that they were made without: the nearest to the middle of 75 to
90 % with which each of them does."""
FEWEST_CASES = 7
"""A fix with fewer cases takes the constant of the others. Fixes are judged from eight on, one of them left out."""
POOLED_CASES = 3
"""The constant of the others counts as so many cases of each fix: few cases make an extreme constant."""
SMALLEST = 0.02
"""Smaller errors are the stopwatch's: they say nothing about the scale."""
STOPWATCH = 0.01
"""No fix is known better than this, however much of its errors the doubt about the host holds."""
RIDGE = 3.0
DIGITS = 3
PACES = (0.1, 0.4, math.inf)
"""Idle shares of the bare step below which the GPU, both, and the host set the pace."""
NO_DOUBT = Doubt(0.0, 0.0)
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Miss:
    """One prediction against one reading of the stopwatch."""

    suite: str
    case: str
    fix: str
    error: float
    """Logarithm of measured over predicted."""
    spread: float
    gain: float
    doubt: Doubt = NO_DOUBT
    """The host's part in the range, by the bare steps of the other suites."""

    @cached_property
    def beyond(self) -> float:
        """The error that is left for the fix: what its part of a range must hold."""
        return math.sqrt(max(self.error**2 - (self.doubt.up if self.error > 0 else self.doubt.down) ** 2, 0.0))

    @cached_property
    def features(self) -> tuple[float, float]:
        """What the scale knows of it."""
        return math.log(self.spread), math.log(max(self.gain, 1.0))


def findings_of(table: Sequence[BlindError], spreads: Spreads) -> list[tuple[BlindError, Replayed]]:
    """Predictions of findings, with the spread that the present replay has for them, or had where it has none now."""
    return [
        (row, spreads.get((row.suite, row.case, row.fix)) or _as_it_was(row))
        for row in table
        if row.fix and row.evidence != WHATIF
    ]


def _as_it_was(row: BlindError) -> Replayed:
    """What the table itself knows; the fix is taken to leave the GPU's work as it is."""
    busy_ns = row.bare_ns * (1 - row.idle_share)
    return Replayed(max(row.spread, least_spread()), Idle(row.idle_share, max(0.0, 1 - busy_ns / row.expected_ns)))


def least_spread() -> float:
    """The spread of a replay that has none of its own."""
    return spread_of(Estimate(1.0, 1.0, 1.0))


def doubts_of(table: Sequence[BlindError], spreads: Spreads) -> list[tuple[BlindError, float, Doubt, Doubt]]:
    """Predictions of findings with their spread, and the host's doubt about step and gain: for each suite by the bare
    steps of the others."""
    found, result = findings_of(table, spreads), []
    suites = {row.suite for row, _ in found}
    paces = {suite: bare_ranges([row for row in table if row.suite != suite]) for suite in suites}
    for row, replayed in found:
        old, new = (doubt_of_host(idle, paces[row.suite]) for idle in (replayed.idle.old, replayed.idle.new))
        result.append((row, replayed.spread, new, doubt_of_gain(old, new, row.gain)))
    return result


def step_misses(table: Sequence[BlindError], spreads: Spreads) -> list[Miss]:
    """Errors of predicted steps, for every reading of the stopwatch."""
    return [
        Miss(row.suite, row.case, row.fix, math.log(after / row.expected_ns), spread, row.gain, doubt)
        for row, spread, doubt, _ in doubts_of(table, spreads)
        for after in row.after_ns
    ]


def gain_misses(table: Sequence[BlindError], spreads: Spreads) -> list[Miss]:
    """Errors of predicted gains, for every reading of the stopwatch."""
    return [
        Miss(row.suite, row.case, row.fix, math.log(before / after / row.gain), spread, row.gain, doubt)
        for row, spread, _, doubt in doubts_of(table, spreads)
        for before, after in zip(row.before_ns, row.after_ns, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Scale:
    """How large an error to expect: exp(constant + powers · features), by ridge regression."""

    constant: float
    powers: tuple[float, float]

    @classmethod
    def of(cls, misses: Sequence[Miss]) -> Scale:
        """Fitted to the logarithms of these errors."""
        values = np.array([miss.features for miss in misses])
        centre, spread = values.mean(0), values.std(0) + 1e-9
        known = np.column_stack([np.ones(len(misses)), (values - centre) / spread])
        target = np.log(np.abs([miss.error for miss in misses]) + SMALLEST)
        penalty = np.diag([0.0] + [RIDGE] * values.shape[1])
        solved = np.linalg.solve(known.T @ known + penalty, known.T @ target)
        powers = solved[1:] / spread
        return cls(float(solved[0] - powers @ centre), (float(powers[0]), float(powers[1])))

    def __call__(self, miss: Miss) -> float:
        of_spread, of_gain = miss.features
        return math.exp(self.constant + self.powers[0] * of_spread + self.powers[1] * of_gain)


def quantile(scores: Sequence[float], cases: int, level: float = LEVEL) -> float:
    """The score that one further case stays below with this probability. The readings of one case are alike, so that
    few cases tell little about the next one however often each was timed: they count, not the readings."""
    ordered = sorted(scores)
    share = min((cases + 1) * level / cases, 1.0)
    return ordered[max(math.ceil(share * len(ordered)), 1) - 1]


@dataclass(frozen=True, slots=True)
class Scored:
    """Errors beyond the doubt over the size that was expected of them, and the scale of that size."""

    scores: Mapping[str, Sequence[float]]
    """Of each fix, in order."""
    scale: Scale
    cases: Mapping[str, int]
    """Number of cases of each fix."""

    @classmethod
    def of(cls, misses: Sequence[Miss]) -> Scored:
        """Scores of these errors; the scale that divides those of a suite is fitted without it."""
        scores: dict[str, list[float]] = {}
        for suite in sorted({miss.suite for miss in misses}):
            scale = Scale.of([miss for miss in misses if miss.suite != suite])
            for miss in (miss for miss in misses if miss.suite == suite):
                scores.setdefault(miss.fix, []).append(max(miss.beyond, STOPWATCH) / scale(miss))
        cases = {fix: len({miss.case for miss in misses if miss.fix == fix}) for fix in scores}
        return cls({fix: sorted(own) for fix, own in scores.items()}, Scale.of(misses), cases)

    @property
    def own(self) -> list[str]:
        """Fixes with a constant of their own."""
        return sorted(fix for fix, count in self.cases.items() if count >= FEWEST_CASES)

    def half_width(self, levels: Mapping[str, float]) -> HalfWidth:
        """The formula of half a range, with the quantile of each fix."""
        unit, own = math.exp(self.scale.constant), self.own
        few = [fix for fix in self.cases if fix not in own] or own
        others = unit * quantile(
            [score for fix in few for score in self.scores[fix]], sum(self.cases[fix] for fix in few)
        )
        by_fix = {}
        for fix in own:
            alone = unit * quantile(self.scores[fix], self.cases[fix], levels[fix])
            weight = self.cases[fix] / (self.cases[fix] + POOLED_CASES)
            by_fix[fix] = round(alone**weight * others ** (1 - weight), DIGITS)
        return HalfWidth(round(others, DIGITS), by_fix, *(round(power, DIGITS) for power in self.scale.powers))


class Calibration:
    """Half widths from a table of errors, with or without some of its suites."""

    def __init__(self, misses: Sequence[Miss]) -> None:
        self.misses = misses
        self.suites = sorted({miss.suite for miss in misses})
        self._scored: dict[frozenset[str], Scored] = {}

    def half_width(self, *without: str) -> HalfWidth:
        """The formula of half a range, from the errors of all suites but these."""
        return self._of(*without).half_width(self._levels(*without))

    def _of(self, *without: str) -> Scored:
        key = frozenset(without)
        if key not in self._scored:
            self._scored[key] = Scored.of([miss for miss in self.misses if miss.suite not in key])
        return self._scored[key]

    def _levels(self, *without: str) -> dict[str, float]:
        """The quantile for each fix: with each further suite left out in turn, the range holds the share to aim at as
        nearly as can be; of equal ones the largest."""
        own, held = self._of(*without).own, dict[tuple[str, float], list[bool]]()
        for suite in (one for one in self.suites if one not in without):
            others = self._of(*without, suite)
            asked = [miss for miss in self.misses if miss.suite == suite and miss.fix in own]
            unit = others.half_width(dict.fromkeys(others.own, LEVEL))
            needed = [unit.constant(one.fix) * one.beyond / unit.of([one.fix], one.spread, one.gain) for one in asked]
            for level in LEVELS if asked else ():
                width = others.half_width(dict.fromkeys(others.own, level))
                for miss, least in zip(asked, needed, strict=True):
                    held.setdefault((miss.fix, level), []).append(least <= width.constant(miss.fix))
        far = {key: abs(sum(inside) / len(inside) - AIM) for key, inside in held.items()}
        return {fix: min(LEVELS, key=lambda level: (far[fix, level], -level)) for fix in own}


def half_width(misses: Sequence[Miss]) -> HalfWidth:
    """The formula of half a range, from these errors."""
    return Calibration(misses).half_width()


def bare_ranges(table: Sequence[BlindError]) -> tuple[BareRange, ...]:
    """Ranges of the bare step by who sets the pace: both tails apart, since a busy host only makes steps longer."""
    cases = {(row.suite, row.case): row for row in table}.values()
    ranges, tail = [], (1 + LEVEL) / 2
    for above, below in zip((-math.inf, *PACES), PACES, strict=False):
        mine = [row for row in cases if above <= row.idle_share < below]
        ratios = [before / row.bare_ns for row in mine for before in row.before_ns]
        low = 1 / quantile([1 / ratio for ratio in ratios], len(mine), tail)
        high = quantile(ratios, len(mine), tail)
        ranges.append(BareRange(below, round(min(low, 1.0), DIGITS), round(max(high, 1.0), DIGITS)))
    return tuple(ranges)


def largest_error(misses: Sequence[Miss]) -> float:
    """The largest error of all, as the bound of half a range."""
    return round(max(abs(miss.error) for miss in misses), 1)
