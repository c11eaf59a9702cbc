"""What the operations that differ do to the step, with the noise of the host taken out.

Two runs of one program may differ by a fifth because the host is noisy; then no rule on the time of the step tells a
change of 3 %. But a step consists of operations in order, each with the idle time before it, and the comparison knows
which of them both sides run. A slow host slows the operations that differ and the rest alike, so their ratio within
one run has little noise. If the rest takes as long in B as in A, then

    step of B / step of A = (1 + changed / rest in B) / (1 + changed / rest in A)

The answer rests on that condition. It is refused where the step says that the rest changed.

Where the device is busy, it is behind the CPU, and what is added there may be regained at later waits. So these waits
count as changed, too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np

from warpline.compare.measured import Measured, side_of
from warpline.compare.parts import same_in_order
from warpline.compare.spread import (
    IDLE_SPREAD,
    PRIOR_RUNS,
    STRUCTURE_FALSE_ALARM,
    Difference,
    difference,
    middle,
    verdict_of,
)
from warpline.compare.typical_step import Operation, TypicalStep
from warpline.estimate import Estimate
from warpline.trace.columns import Bools, Floats, Int64s
from warpline.units import several

OPERATION_SPREAD, SHARE_SPREAD = 0.3, 0.1
"""Usual relative difference between runs of the time of one operation with the wait before it, over that of the rest of
the step; and of many operations together. Measured on an H200: docs/noise.md."""
LEAST_REST = 0.05
"""The rest must be this share of the step to be a measure of the host's speed."""


@dataclass(frozen=True, slots=True)
class ChangedWork:
    """The operations that differ, and what they do to the step."""

    ratio: Estimate
    """Step of B over that of A if the rest takes as long in both."""
    gone: int
    """Operations of A without the same one in B, in a step."""
    new: int

    @property
    def in_words(self) -> str:
        """How many operations differ."""
        gone, new = f"{several(self.gone, 'operation')} gone", several(self.new, "new operation")
        return f"{gone} and {new}" if self.gone and self.new else gone if self.gone else new

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {"ratio": self.ratio.rounded(5).to_dict(), "gone": self.gone, "new": self.new}


def judge(a: Sequence[Measured], b: Sequence[Measured], least_effect: float) -> tuple[Difference, ChangedWork | None]:
    """The verdict of the times or, where they leave it open, of the operations that differ."""
    found, changed = difference(side_of(a), side_of(b), least_effect), changed_work(a, b)
    if changed is None:
        return found, None
    verdict = verdict_of(changed.ratio, least_effect)
    against = {"slower": "faster", "faster": "slower"}.get(verdict)
    if against is None or against == found.verdict:
        opposed = against is not None and found.judged_by == "work"
        return (replace(found, verdict="inconclusive", judged_by="step") if opposed else found), changed
    rest = rest_ratio(found.ratio, changed)
    if found.verdict != "inconclusive" or verdict_of(rest, least_effect) == against:
        return found, changed
    return replace(found, verdict=verdict, judged_by="structure", more_runs=None), changed


def rest_ratio(step: Estimate, changed: ChangedWork) -> Estimate:
    """The ratio of the rest, from that of the step."""
    by = changed.ratio.expected
    return Estimate(step.low / by, step.expected / by, step.high / by)


def changed_work(a: Sequence[Measured], b: Sequence[Measured]) -> ChangedWork | None:
    """The operations that differ; None if all are the same, or the runs of one side differ among themselves."""
    runs = [_usual(side) for side in (a, b)]
    if not all(runs):
        return None
    ends = [steps[0] for steps in runs]
    pairs = same_in_order(ends[0].operations, ends[1].operations)
    if not pairs or len(pairs) == len(ends[0].operations) == len(ends[1].operations):
        return None
    places = np.array(pairs, np.int64)
    moved = _moved_waits(ends, places)
    sides = [_side(steps, places[:, column], moved) for column, steps in enumerate(runs)]
    if any(side is None for side in sides):
        return None
    (mine, other) = (side for side in sides if side is not None)
    centre = other.centre - mine.centre
    doubt = math.sqrt(mine.variance / mine.runs + other.variance / other.runs)
    reach = doubt * NormalDist().inv_cdf(1 - STRUCTURE_FALSE_ALARM)
    ratio = Estimate(*(math.exp(min(centre + away, 700.0)) for away in (-reach, 0.0, reach)))
    return ChangedWork(ratio, len(ends[0].operations) - len(pairs), len(ends[1].operations) - len(pairs))


def _usual(side: Sequence[Measured]) -> list[TypicalStep]:
    """The steps of the runs that run the same operations, if these are most of the runs."""
    kinds = [_kinds(run.step.operations) if run.step.waited_ns is not None else None for run in side]
    kind, times = Counter(kinds).most_common(1)[0]
    if kind is None or 2 * times <= len(side):
        return []
    return [run.step for run, its in zip(side, kinds, strict=True) if its == kind]


def _kinds(operations: tuple[Operation, ...]) -> tuple[tuple[str, str, tuple[int, int, int]], ...]:
    return tuple((one.kind, one.name, one.grid) for one in operations)


def _moved_waits(ends: Sequence[TypicalStep], places: Int64s) -> Bools:
    """Whether the wait before each common operation, and last the idle time at the end, belongs to what changed."""
    edges = np.vstack([[-1, -1], places, [len(step.operations) for step in ends]])
    moved = np.any(np.diff(edges, axis=0) > 1, axis=1)
    for place in np.flatnonzero(moved).tolist():
        if any(_is_busy(step, *edges[place : place + 2, column]) for column, step in enumerate(ends)):
            moved[place:] = True
            break
    return moved


def _is_busy(step: TypicalStep, before: int, after: int) -> bool:
    """Whether the device works rather than waits between these two operations."""
    assert step.waited_ns is not None
    waited = float(step.waited_ns[before + 1 : after + 1].sum())
    return float(step.exposed_ns[before + 1 : after].sum()) > waited


@dataclass(frozen=True, slots=True)
class _Shares:
    """Of the runs of a side: the logarithm of the step over the rest, and the variance of one run."""

    centre: float
    variance: float
    runs: int


def _side(steps: Sequence[TypicalStep], common: Int64s, moved: Bools) -> _Shares | None:
    times = np.array([_times(step, common, moved) for step in steps])
    rest, waits, idle, whole = times.T
    if float(np.median(rest / whole)) < LEAST_REST:
        return None
    centre, variance, freedom = middle(np.log(whole / rest)[:, None])
    share = 1 - math.exp(-float(centre[0]))
    usual = share * math.sqrt(_usual_variance(rest, waits, idle, whole, len(steps[0].operations) - len(common)))
    pooled = (PRIOR_RUNS * usual**2 + freedom * float(variance[0])) / (PRIOR_RUNS + freedom)
    return _Shares(float(centre[0]), pooled, len(steps))


def _usual_variance(rest: Floats, waits: Floats, idle: Floats, whole: Floats, operations: int) -> float:
    """Of the time of what changed over that of the rest: the host's speed cancels as far as both wait for it."""
    changed = np.maximum(whole - rest, 1.0)
    apart = float(np.median((idle - waits) / changed - waits / rest))
    return (IDLE_SPREAD * apart) ** 2 + SHARE_SPREAD**2 + OPERATION_SPREAD**2 / max(operations, 1)


def _times(step: TypicalStep, common: Int64s, moved: Bools) -> tuple[float, float, float, float]:
    """Time of the rest, the waits in it, all waits, and the step."""
    assert step.waited_ns is not None
    idle = float(step.step_ns - step.exposed_ns.sum())
    last = max(idle - float(step.waited_ns.sum()), 0.0)
    waits = float(np.append(step.waited_ns[common], last)[~moved].sum())
    return max(float(step.exposed_ns[common].sum()) + waits, 1.0), waits, idle, max(step.step_ns, 1.0)
