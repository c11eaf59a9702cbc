"""What the operations that differ do to the step, with the noise of the host taken out.

Two runs of one program may differ by a fifth because the host is noisy; then no rule on the time of the step tells a
change of 3 %. But a step consists of operations in order, each with the idle time before it, and the comparison knows
which of them both sides run. A slow host slows the operations that differ and the rest alike, so their ratio within
one run has little noise. If the rest takes as long in B as in A, then

    step of B / step of A = (1 + changed / rest in B) / (1 + changed / rest in A)

The answer rests on that condition. It is refused where the rest, judged by itself, went the other way.

Where the device is busy, it is behind the CPU, and what is added there may be regained at later waits. So these waits
count as changed, too.

Where all operations are the same, the CPU may still make calls that only one side makes: allocations, which no noise
adds. Then the time for which the device waits for them is what changed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from msgspec import Struct, to_builtins
from msgspec.structs import replace

from warpline.compare.measurement import RunMeasurement, sides_of
from warpline.compare.parts import same_in_order
from warpline.compare.spread import (
    IDLE_SPREAD,
    MORE_RUNS,
    PRIOR_RUNS,
    STRUCTURE_FALSE_ALARM,
    Difference,
    RunTime,
    Side,
    are_equal,
    difference,
    middle,
    verdict_of,
)
from warpline.compare.stopwatch import timed_difference
from warpline.compare.typical_step import Operation, TypicalStep
from warpline.estimate import Estimate
from warpline.trace.arrays import Bools, Floats, Int64s
from warpline.units import several

OPERATION_SPREAD, SHARE_SPREAD = 0.3, 0.1
"""Usual relative difference between runs of the time of one operation with the wait before it, over that of the rest of
the step; and of many operations together. RunMeasurement on an H200: docs/noise.md."""
OPPOSITE: dict[str, str] = {"slower": "faster", "faster": "slower"}
MIN_REST_SHARE = 0.05
"""The rest must be this share of the step to be a measure of the host's speed."""
MIN_CALLS = 0.5
"""Fewer calls in a step than this are none: a program may still allocate once."""
MAX_TIME_RATIO, MAX_TIME_CHANGE_NS = 1.25, 2000
"""The same kernel on both sides does the same work if its times differ by less than this ratio, or by so little."""


class ChangedWork(Struct, frozen=True):
    """The operations that differ, and what they do to the step."""

    ratio: Estimate
    """Step of B over that of A if the rest takes as long in both."""
    gone: int
    """Operations of A without the same one in B, in a step."""
    new: int
    rest: Difference
    """The rest of the step, judged by itself."""
    more_runs: int | None = None
    """Runs to add on each side until this look likely has an answer; None if so many would not help."""
    what: Literal["operation", "allocation"] = "operation"
    """Of the device, or calls of the CPU where the device does the same on both sides."""

    @property
    def in_words(self) -> str:
        """How many operations differ."""
        gone, new = f"{several(self.gone, self.what)} gone", several(self.new, f"new {self.what}")
        return f"{gone} and {new}" if self.gone and self.new else gone if self.gone else new

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {"ratio": to_builtins(self.ratio.rounded(5)), "what": self.what, "gone": self.gone, "new": self.new}


def judge(
    a: Sequence[RunMeasurement], b: Sequence[RunMeasurement], least_effect: float
) -> tuple[Difference, ChangedWork | None]:
    """The verdict of the times or, where they leave it open, of the operations that differ."""
    found, changed = _by_times(a, b, least_effect), changed_work(a, b, least_effect)
    if changed is None or abs(changed.ratio.expected - 1) < least_effect:
        return found, changed
    verdict = verdict_of(changed.ratio, least_effect)
    opposite = OPPOSITE.get(verdict)
    if opposite is None:
        known = [more for more in (found.more_runs, changed.more_runs) if more is not None]
        is_open = found.verdict == "inconclusive"
        return (replace(found, more_runs=min(known, default=None)) if is_open else found), changed
    if found.judged_by == "work" and found.verdict == opposite:
        return replace(found, verdict="inconclusive", judged_by="stopwatch" if found.timed else "step"), changed
    if found.verdict != "inconclusive" or changed.rest.verdict == opposite or _excludes(found.timed, changed.ratio):
        return found, changed
    return replace(found, verdict=verdict, judged_by="structure", more_runs=None), changed


def _by_times(a: Sequence[RunMeasurement], b: Sequence[RunMeasurement], least_effect: float) -> Difference:
    """The verdict of the stopwatch if both sides were timed, else of the recorded steps; where it is open, of the
    device's work."""
    sides = sides_of(a, b)
    found = difference(*sides, least_effect)
    times = [run.stopwatch for run in a], [run.stopwatch for run in b]
    timed = None if are_equal(*sides) else timed_difference(sides, times, least_effect)
    if timed is None:
        return found
    if timed.verdict == "inconclusive" and found.by_work != "inconclusive":
        return replace(found, verdict=found.by_work, judged_by="work", more_runs=None, timed=timed)
    return replace(found, verdict=timed.verdict, judged_by="stopwatch", more_runs=timed.more_runs, timed=timed)


def _excludes(timed: Difference | None, ratio: Estimate) -> bool:
    """Whether the stopwatch knows that the operations that differ do not do so much to the step."""
    return timed is not None and (ratio.low > timed.ratio.high or ratio.high < timed.ratio.low)


def changed_work(a: Sequence[RunMeasurement], b: Sequence[RunMeasurement], least_effect: float) -> ChangedWork | None:
    """The operations that differ; None if all are the same, or the runs of one side differ among themselves."""
    runs = [_usual(side) for side in (a, b)]
    if not all(runs):
        return None
    operations = [steps[0].operations for steps in runs]
    pairs = same_in_order(operations[0], operations[1])
    gone, new = (len(some) - len(pairs) for some in operations)
    if not gone + new:
        return _allocations(a, b, least_effect)
    if not pairs:
        return None
    places = _as_long(runs, np.array(pairs, np.int64))
    if not len(places):
        return None
    moved = _moved_waits([steps[0] for steps in runs], places)
    times_a, times_b = (_times(steps, places[:, column], moved) for column, steps in enumerate(runs))
    return _changed(times_a, times_b, gone, new, least_effect)


def _changed(times_a: _Times, times_b: _Times, gone: int, new: int, least_effect: float) -> ChangedWork | None:
    if min(times_a.rest_share, times_b.rest_share) < MIN_REST_SHARE:
        return None
    (centre_a, variance_a), (centre_b, variance_b) = times_a.logarithm(gone), times_b.logarithm(new)
    deviations = NormalDist().inv_cdf(1 - STRUCTURE_FALSE_ALARM)

    def ratio(more: int) -> Estimate:
        """With so many more runs on each side."""
        runs_a, runs_b = (len(times.step_ns) + more for times in (times_a, times_b))
        reach = deviations * math.sqrt(variance_a / runs_a + variance_b / runs_b)
        return Estimate(*(math.exp(min(centre_b - centre_a + away, 700.0)) for away in (-reach, 0.0, reach)))

    known = ratio(0)
    is_large = abs(known.expected - 1) >= least_effect
    settled = (more for more in MORE_RUNS if is_large and verdict_of(ratio(more), least_effect) in OPPOSITE)
    rest = difference(times_a.of_the_rest, times_b.of_the_rest, least_effect)
    return ChangedWork(known, gone, new, rest, next(settled, None))


def _allocations(a: Sequence[RunMeasurement], b: Sequence[RunMeasurement], least_effect: float) -> ChangedWork | None:
    """The calls that allocate, if every run of one side makes some in a step and none of the other does."""
    counts = [[run.counts["allocations"] for run in side] for side in (a, b)]
    if not any(min(some) >= 1 and max(none) < MIN_CALLS for some, none in (counts, counts[::-1])):
        return None
    gone, new = (round(float(np.median(side))) for side in counts)
    times_a, times_b = (_without_memory([run.step for run in side]) for side in (a, b))
    found = _changed(times_a, times_b, gone, new, least_effect)
    return None if found is None else replace(found, what="allocation")


def _usual(side: Sequence[RunMeasurement]) -> list[TypicalStep]:
    """The steps of the runs that run the same operations, if these are most of the runs."""
    kinds = [_kinds(run.step.operations) if run.step.waited_ns is not None else None for run in side]
    kind, times = Counter(kinds).most_common(1)[0]
    if kind is None or 2 * times <= len(side):
        return []
    return [run.step for run, its in zip(side, kinds, strict=True) if its == kind]


def _kinds(operations: tuple[Operation, ...]) -> tuple[tuple[str, str, tuple[int, ...]], ...]:
    return tuple(one.key for one in operations)


def _as_long(runs: Sequence[list[TypicalStep]], places: Int64s) -> Int64s:
    """The operations that take about as long in both: a kernel with as many blocks as the device has processors may do
    any amount of work. An op of the CPU does the same work on inputs of the same sizes, however slow the host is; what
    has no sizes, such as a gap, may do any."""
    if runs[0][0].is_on_cpu:
        operations = runs[0][0].operations
        return places[[operations[place].kind == "op" for place in places[:, 0].tolist()]]
    times_a, times_b = (
        np.median([step.exposed_ns[places[:, column]] for step in steps], axis=0) for column, steps in enumerate(runs)
    )
    apart = np.maximum(times_a, times_b) > MAX_TIME_RATIO * np.minimum(times_a, times_b)
    return places[~(apart & (np.abs(times_a - times_b) > MAX_TIME_CHANGE_NS))]


def _moved_waits(ends: Sequence[TypicalStep], places: Int64s) -> Bools:
    """Whether the wait before each common operation, and last the idle time at the end, belongs to what changed."""
    edges = np.vstack([[-1, -1], places, [len(step.operations) for step in ends]])
    moved: Bools = np.asarray(np.any(np.diff(edges, axis=0) > 1, axis=1), bool)
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


def _without_memory(steps: Sequence[TypicalStep]) -> _Times:
    """The rest is all but the waits for calls that allocate or free memory."""
    work = np.array([max(float(step.exposed_ns.sum()), 1.0) for step in steps])
    idle = np.array([sum(step.idle_ns.values()) for step in steps])
    waits = idle - np.array([step.idle_ns["memory"] for step in steps])
    return _Times(tuple(step.lengths_ns for step in steps), work, waits, idle, work + idle)


class _Times(Struct, frozen=True):
    """Of the runs of a side."""

    lengths_ns: tuple[Int64s, ...]
    """Of every warm step of each run."""
    work_ns: Floats
    """The device's work that both sides do."""
    waits_ns: Floats
    """Waits before it."""
    idle_ns: Floats
    """All waits."""
    step_ns: Floats

    @property
    def rest_share(self) -> float:
        """Share of the step that both sides have, in the median run."""
        return float(np.median((self.work_ns + self.waits_ns) / self.step_ns))

    @property
    def of_the_rest(self) -> Side:
        """The rest of the step as if it were all."""
        shares = (self.work_ns + self.waits_ns) / self.step_ns
        each = zip(self.work_ns.tolist(), self.waits_ns.tolist(), self.lengths_ns, shares.tolist(), strict=True)
        return tuple(
            RunTime(work, waits, np.rint(lengths * share).astype(np.int64)) for work, waits, lengths, share in each
        )

    def logarithm(self, operations: int) -> tuple[float, float]:
        """Of the step over the rest, and its variance between runs, with so many operations that differ."""
        rest = self.work_ns + self.waits_ns
        centre, variance, freedom = middle(np.log(self.step_ns / rest)[:, None])
        changed = np.maximum(self.step_ns - rest, 1.0)
        # The host's speed cancels as far as both wait for it.
        apart = float(np.median((self.idle_ns - self.waits_ns) / changed - self.waits_ns / rest))
        spread = (IDLE_SPREAD * apart) ** 2 + SHARE_SPREAD**2 + OPERATION_SPREAD**2 / max(operations, 1)
        usual = (1 - math.exp(-float(centre[0]))) ** 2 * spread
        pooled = (PRIOR_RUNS * usual + freedom * float(variance[0])) / (PRIOR_RUNS + freedom)
        return float(centre[0]), pooled


def _times(steps: Sequence[TypicalStep], common: Int64s, moved: Bools) -> _Times:
    work, waits, idle = [], [], []
    for step in steps:
        assert step.waited_ns is not None
        if step.is_on_cpu:  # all of it is the host's time
            idle.append(step.step_ns)
            work.append(1.0)
            waits.append(float(step.exposed_ns[common].sum()))
            continue
        idle.append(float(step.step_ns - step.exposed_ns.sum()))
        last = max(idle[-1] - float(step.waited_ns.sum()), 0.0)
        work.append(max(float(step.exposed_ns[common].sum()), 1.0))
        waits.append(float(np.append(step.waited_ns[common], last)[~moved].sum()))
    whole = np.maximum([step.step_ns for step in steps], 1.0)
    return _Times(tuple(step.lengths_ns for step in steps), np.array(work), np.array(waits), np.array(idle), whole)
