"""The comparison of two programs, or of one program before and after a change.

`Comparison.to_dict` is the JSON contract `warpline.comparison/1`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from msgspec import Struct, to_builtins
from msgspec.structs import replace

from warpline.compare import same_work
from warpline.compare.changed_work import ChangedWork, judge
from warpline.compare.cold_start import ColdStartChange, cold_start
from warpline.compare.comparable import obstacles
from warpline.compare.counts import Counts, differing
from warpline.compare.cpu_ops import CpuOp, changed_cpu_ops
from warpline.compare.measurement import RunMeasurement, measure, median_run, side_of, slower_host
from warpline.compare.parts import StepPart, explain
from warpline.compare.prediction import Outcome, contents_of, outcome, replaces_all_kernels
from warpline.compare.spread import MORE_RUNS, Difference, Judged, are_equal, drift, verdict_of
from warpline.compare.stopwatch import is_timed, typical_ns
from warpline.compare.typical_step import MIN_STEPS, TypicalStep
from warpline.compare.words import in_words, percent
from warpline.errors import CannotAnswer, UsageError
from warpline.estimate import LEAST_EFFECT, Estimate
from warpline.notebook import ShownAsCard
from warpline.trace.trace import Trace
from warpline.units import duration, several

SCHEMA = "warpline.comparison/1"
Verdict = Literal["faster", "slower", "same", "inconclusive", "not_comparable"]
Metric = Literal["step", "busy"]
"""What is compared: the step, or the device's own work alone."""
SLOW_STEP = 2.0
"""From this multiple of the usual step on, a step is far longer: jitter of the host is less."""

MIN_HOST_DIFFERENCE = 0.1
"""From this difference of a launch on, the hosts of the two sides were not equally fast."""
MIN_VISIBLE_SHARE = 0.5
"""Below this share of the change without the profiler (and above its inverse) the recorded one is misleading."""


class ComparedRuns(Struct, frozen=True):
    """One side: its typical step, and what a step does."""

    measurements: tuple[RunMeasurement, ...]

    @property
    def step(self) -> TypicalStep:
        """The step of the median run."""
        return median_run(self.measurements).step

    @property
    def counts(self) -> Counts:
        """What a step of the median run does."""
        return median_run(self.measurements).counts

    @property
    def step_ns(self) -> int:
        """Length of the typical step."""
        return round(self.step.step_ns)

    @property
    def timed(self) -> bool:
        """Whether most runs were timed without the profiler."""
        return is_timed([run.stopwatch for run in self.measurements])

    @property
    def stopwatch_ns(self) -> int | None:
        """Length of the step without the profiler; None if it is unknown."""
        return typical_ns([run.stopwatch for run in self.measurements]) if self.timed else None

    @property
    def runs(self) -> int:
        """Number of recordings."""
        return len(self.measurements)

    @property
    def length(self) -> str:
        """The time in words, and what it is of."""
        return f"{duration(self.step_ns)} {'a step' if self.step.has_steps else 'for the whole recording'}"


class Comparison(ShownAsCard, Struct, frozen=True):
    """Two sides and the difference between them, in parts that sum to it.

    >>> comparison = warpline.compare("before.json.gz", "after.json.gz")
    >>> comparison.verdict, comparison.ratio.expected
    >>> comparison.parts[0]
    """

    verdict: Verdict
    reasons: tuple[str, ...]
    """Why it is inconclusive or not comparable, and what else a reader should know."""
    a: ComparedRuns
    b: ComparedRuns
    ratio: Estimate
    """Step time of B over that of A; below 1 is faster."""
    work_ratio: Estimate
    """Likewise of the device's own work, without copies from and to the host: it differs least between runs. Of a
    program without GPU work it says nothing."""
    judged_by: Judged
    """Whose verdict it is: of the `stopwatch` if both sides were timed without the profiler, else of the recorded
    `step`. Where that is inconclusive: of the device's `work` if that takes most of the step, or of the `structure`,
    which is the operations that differ. `busy` is the device's work where only that was asked about."""
    changed: ChangedWork | None
    """The operations that differ, with the noise of the host taken out; None if all are the same or vary by run."""
    p_value: float | None
    more_runs: int | None
    parts: tuple[StepPart, ...]
    """What changed, the largest first; the changes and `unexplained_ns` sum to `change_ns`."""
    unexplained_ns: int
    """Change of idle time without a known cause."""
    cold_start: ColdStartChange | None = None
    """The steps that are cold on a side, beside the same ones of the other; None if none are. The rest of the answer is
    about warm steps."""
    cpu_ops: tuple[CpuOp, ...] = ()
    """Outermost ops in which the CPU spends longer on one side, the largest change first."""
    outcome: Outcome | None = None
    """What the replay of A predicted for the fix that B has; None if no fix is recognised."""
    stopwatch_ratio: Estimate | None = None
    """Like `ratio`, of the step without the profiler; None unless both sides were timed."""
    same_unit: bool = True
    """Whether both times are about the same amount of work of one program, as far as is known."""

    @property
    def change_ns(self) -> int:
        """How much longer the step of B is."""
        return self.b.step_ns - self.a.step_ns

    @property
    def is_on_cpu(self) -> bool:
        """Whether the programs have no GPU work."""
        return self.a.step.is_on_cpu and self.b.step.is_on_cpu

    @property
    def sentence(self) -> str:
        """The verdict with the times it rests on; where both sides were timed, with the recorded ones beside them."""
        if not self.same_unit:
            return f"Not comparable: {self.a.length} and {self.b.length}."
        what = ("warm step" if self.cold_start else "step") if self.a.step.has_steps else "recording"
        times = f"{duration(self.a.step_ns)} → {duration(self.b.step_ns)}"
        if self.verdict == "not_comparable":
            return f"Not comparable: {times} a {what}."
        known = self._with_ratio(f"{times} a {what}", self.ratio)
        if self.stopwatch_ratio is not None and self.a.stopwatch_ns is not None and self.b.stopwatch_ns is not None:
            bare = f"{duration(self.a.stopwatch_ns)} → {duration(self.b.stopwatch_ns)} a {what} without the profiler"
            recorded = f"recorded {times}, {self._over_all_runs}{percent(self.ratio.expected)}"
            known = f"{self._with_ratio(bare, self.stopwatch_ratio)}; {recorded}{self._hidden(self.stopwatch_ratio)}"
        if self.judged_by == "busy":
            words = {"slower": "longer in B", "faster": "shorter in B", "same": "as long in B as in A"}
            how = words.get(self.verdict, "not known to be longer in B")
            return f"The GPU's work is {how}: {in_words(self.work_ratio)}; the step: {known}."
        if self.judged_by == "work" and self.verdict in {"faster", "slower"}:
            work = f"The GPU's work is {self.verdict} in B: {in_words(self.work_ratio)}"
            return f"{work}; the step is inconclusive: {known}."
        if self.judged_by == "structure" and self.changed is not None:
            work = f"B is {self.verdict} by what it runs: {self.changed.in_words}, {in_words(self.changed.ratio)}"
            return f"{work}; the step alone is inconclusive: {known}."
        if self.verdict == "inconclusive":
            return f"Inconclusive: {known}."
        how = "as fast as" if self.verdict == "same" else f"{self.verdict} than"
        return f"B is {how} A: {known}."

    @property
    def _over_all_runs(self) -> str:
        return "over all runs " if max(self.a.runs, self.b.runs) > 1 else ""

    def _with_ratio(self, times: str, ratio: Estimate) -> str:
        over = self._over_all_runs
        return f"{times}{' in the median runs' if over else ''}, {over}{in_words(ratio)}"

    def _hidden(self, stopwatch: Estimate) -> str:
        """What the profiler does to the difference, if much, where the stopwatch has shown it."""
        if self.judged_by != "stopwatch" or self.verdict not in {"faster", "slower"}:
            return ""
        share = math.log(self.ratio.expected) / math.log(stopwatch.expected)
        what = "gain" if self.verdict == "faster" else "loss"
        if share < MIN_VISIBLE_SHARE:
            return f": the profiler hides {'' if share < MIN_VISIBLE_SHARE / 2 else 'more than half of '}the {what}"
        return f": the profiler makes the {what} look larger" if share > 1 / MIN_VISIBLE_SHARE else ""

    def to_dict(self) -> dict[str, Any]:
        """The JSON contract."""
        return {
            "schema": SCHEMA,
            "verdict": self.verdict,
            "judged_by": self.judged_by,
            "reasons": list(self.reasons),
            "a": _side(self.a),
            "b": _side(self.b),
            "change": {
                "step_ns": self.change_ns,
                "ratio": to_builtins(self.ratio.rounded(5)),
                "work_ratio": None if self.is_on_cpu else to_builtins(self.work_ratio.rounded(5)),
                "stopwatch_ratio": to_builtins(self.stopwatch_ratio.rounded(5)) if self.stopwatch_ratio else None,
                "structure": self.changed.to_dict() if self.changed else None,
                "p_value": self.p_value,
            },
            "more_runs": self.more_runs,
            "parts": [part.to_dict() for part in self.parts],
            "unexplained_ns": self.unexplained_ns,
            "cpu_ops": to_builtins(self.cpu_ops),
            "cold_start": self.cold_start.to_dict() if self.cold_start else None,
            "outcome": self.outcome.to_dict() if self.outcome else None,
        }

    def __repr__(self) -> str:
        return f"<Comparison {self.verdict}: {duration(self.a.step_ns)} → {duration(self.b.step_ns)}>"


def compare(
    a: Sequence[Trace],
    b: Sequence[Trace],
    least_effect: float = LEAST_EFFECT,
    *,
    anyway: bool = False,
    same_program: bool = False,
) -> Comparison:
    """Compare the runs of A with those of B, and recognise the fix that was made.

    With `anyway`, a difference that would forbid the comparison becomes a remark. With `same_program`, the caller knows
    that both are one program, whatever kernels they run.
    """
    runs = _with_distinct_names([measure(trace) for trace in (*a, *b)], [trace.file for trace in (*a, *b)])
    runs_a, runs_b = runs[: len(a)], runs[len(a) :]
    ends = _of_median(a, runs_a), _of_median(b, runs_b)
    step_a, step_b = median_run(runs_a).step, median_run(runs_b).step
    if not same_program and same_work.other_program(step_a, step_b):
        same_program = replaces_all_kernels(contents_of(ends[0], step_a), contents_of(ends[1], step_b))
    found = compare_measurements(runs_a, runs_b, least_effect, anyway=anyway, same_program=same_program)
    if found.verdict == "not_comparable":
        return found
    found = replace(found, cold_start=cold_start(a, b, least_effect))
    if found.is_on_cpu:
        return found  # its parts are ops already, and fixes are recognised by GPU work
    found = replace(found, cpu_ops=changed_cpu_ops(*ends, found.a.step.cpu_spans, found.b.step.cpu_spans))
    if all(not part.change_ns for part in found.parts):
        return found
    known = outcome(*ends, found.a.step, found.b.step)
    if found.cold_start is not None and known is not None and known.fixes == ("warm_up",):
        return found  # what a warm-up gains is said there; the prediction would be one of warm steps
    return replace(found, outcome=replace(known, is_open=found.verdict == "inconclusive") if known else None)


def _with_distinct_names(runs: Sequence[RunMeasurement], files: Sequence[Path]) -> list[RunMeasurement]:
    """Different files of one name are named with their folders."""
    known = [{other for other in files if other.name == file.name} for file in files]
    return [
        replace(run, file=f"{file.parent.name}/{file.name}") if len(same) > 1 else run
        for run, file, same in zip(runs, files, known, strict=True)
    ]


def _of_median(traces: Sequence[Trace], runs: Sequence[RunMeasurement]) -> Trace:
    median = median_run(runs)
    return next(trace for trace, run in zip(traces, runs, strict=True) if run is median)


def compare_measurements(
    a: Sequence[RunMeasurement],
    b: Sequence[RunMeasurement],
    least_effect: float = LEAST_EFFECT,
    *,
    anyway: bool = False,
    same_program: bool = False,
    metric: Metric = "step",
) -> Comparison:
    """Compare runs that were measured before; `compare` says what `anyway` and `same_program` mean."""
    if not a or not b:
        raise UsageError("nothing-to-compare", "a comparison needs a recording on each side")
    if not 0 < least_effect < 1:
        raise UsageError("bad-effect", f"the least effect lies between 0 and 100 %, not at {100 * least_effect:g} %")
    side_a, side_b = ComparedRuns(tuple(a)), ComparedRuns(tuple(b))
    found, changed = judge(a, b, least_effect)
    if metric == "busy" and side_b.step.is_on_cpu:
        raise CannotAnswer(
            "no-gpu-work", "the metric busy is the GPU's work, and the program has none", "compare the step"
        )
    if metric == "busy":
        found = replace(found, verdict=verdict_of(found.work_ratio, least_effect), judged_by="busy", more_runs=None)
    explained = explain(side_a.step, side_b.step)
    known = _comparability(side_a, side_b, anyway=anyway, same_program=same_program)
    verdict: Verdict = "not_comparable" if known.obstacles else found.verdict
    remarks = [*known.obstacles, *known.accepted]
    if known.has_same_unit:
        remarks += _remarks(found, verdict, side_a, side_b, least_effect)
    if found.judged_by in {"step", "work", "structure"} and _is_contradicted(verdict, side_a, side_b, least_effect):
        verdict = "inconclusive"
        between_a, between_b = (duration(round(side.step.between_ns or 0)) for side in (side_a, side_b))
        remarks.append(
            f"{between_a} pass between two steps of A and {between_b} between those of B, which no step counts, and "
            "which outweigh how the steps differ. If a range holds a whole iteration, name it with --step-range"
        )
    elif are_equal(side_of(a), side_of(b)) and not any(part.change_ns for part in explained.parts):
        remarks = [*known.obstacles, "A and B are equal to the nanosecond: it is the same recording"]
    if verdict in {"faster", "slower"} and found.judged_by == "structure" and changed is not None:
        remarks.append(
            "the host's noise leaves the step open, but within a run it slows all operations alike; the rest of the "
            f"step is taken as unchanged: {in_words(changed.rest.ratio)} may be noise"
        )
    return Comparison(
        verdict=verdict,
        reasons=tuple(remarks),
        a=side_a,
        b=side_b,
        ratio=found.ratio,
        work_ratio=found.work_ratio,
        judged_by=found.judged_by,
        changed=changed,
        p_value=found.p_value,
        more_runs=found.more_runs,
        parts=explained.parts,
        unexplained_ns=explained.unexplained_ns,
        stopwatch_ratio=found.timed.ratio if found.timed else None,
        same_unit=known.has_same_unit,
    )


class _Comparability(Struct, frozen=True):
    """What stands against comparing two sides."""

    obstacles: list[str]
    accepted: list[str]
    """Differences that the user asked to pass over."""
    has_same_unit: bool
    """Whether both are about steps of the same work, or both about whole recordings."""


def _comparability(a: ComparedRuns, b: ComparedRuns, *, anyway: bool, same_program: bool) -> _Comparability:
    damages = [*_damages("A", a.measurements), *_damages("B", b.measurements)]
    differences = _all_differences(a.measurements, b.measurements, same_program)
    if anyway and a.step.has_steps == b.step.has_steps:
        return _Comparability(damages, [f"compared anyway, although {reason}" for reason in differences], True)
    if a.step.is_on_cpu != b.step.is_on_cpu:
        return _Comparability([*damages, *differences], [], False)
    if wrong_unit := same_work.obstacle(a.step, b.step):
        return _Comparability([*damages, *dict.fromkeys([*differences, wrong_unit])], [], False)
    other = None if same_program else same_work.other_program(a.step, b.step)
    if other:  # then what else differs says nothing
        return _Comparability([*damages, f"{other}; --anyway compares them"], [], False)
    return _Comparability([*damages, *differences], [], True)


def _is_contradicted(verdict: Verdict, a: ComparedRuns, b: ComparedRuns, least_effect: float) -> bool:
    """Whether the time from step to step speaks against what the steps say."""
    if verdict == "slower":
        return same_work.is_longer_between(b.step, a.step, least_effect)
    return verdict in {"faster", "same"} and same_work.is_longer_between(a.step, b.step, least_effect)


def _damages(name: str, runs: Sequence[RunMeasurement]) -> list[str]:
    """Why runs cannot be relied on."""
    return [f"{name} cannot be relied on: {run.file}: {error}" for run in runs for error in run.errors]


def _all_differences(a: Sequence[RunMeasurement], b: Sequence[RunMeasurement], same_program: bool) -> list[str]:
    """Why the two sides, or the runs of one of them, are not runs of one program in one setting."""
    found = [*differences_of_runs("A", a), *differences_of_runs("B", b), *_differences(a[0], b, same_program)]
    return list(dict.fromkeys(found))


def differences_of_runs(name: str, runs: Sequence[RunMeasurement]) -> list[str]:
    """Why the runs of one side are not runs of one program in one setting; empty if they are."""
    return _differences(runs[0], runs[1:], False, f"{runs[0].file} of {name}", f"another run of {name}")


def _differences(
    first: RunMeasurement, runs: Sequence[RunMeasurement], same_program: bool, one: str = "A", other: str = "B"
) -> list[str]:
    found = [reason for run in runs for reason in obstacles(first.setting, run.setting, one, other)]
    work = (other_work(first.step, run.step, same_program, one, other) for run in runs)
    return list(dict.fromkeys([*found, *(reason for reason in work if reason)]))


def other_work(
    a: TypicalStep, b: TypicalStep, same_program: bool = False, one: str = "A", other: str = "B"
) -> str | None:
    """Why two steps are not about the same work of one program."""
    wrong_unit = same_work.obstacle(a, b, one, other)
    return wrong_unit or (None if same_program else same_work.other_program(a, b, one, other))


def _remarks(found: Difference, verdict: Verdict, a: ComparedRuns, b: ComparedRuns, least_effect: float) -> list[str]:
    """What else a reader should know: of the recordings, and of the verdict."""
    remarks = _of_recordings(a, b, least_effect)
    times = found.timed or found
    overlap = times.ratio.low > 1 or times.ratio.high < 1
    ranks = f"the steps of A and B overlap: a rank test gives p = {times.p_value or 0:.2g}"
    if verdict in {"faster", "slower"} and found.judged_by == "work":
        waits = "the part of the step in which the GPU waits for the CPU differs too much between runs to tell"
        remarks.append(f"{ranks if overlap else waits}; the GPU's own work is most of the step, and differs")
    if verdict == "inconclusive" and found.judged_by != "busy":
        both = f"the interval includes both no change and a change of {100 * least_effect:.0f} %"
        remarks.append(f"{ranks if overlap else both}; {_more_runs(found.more_runs, a, b)}")
        counted = differing(a.counts, b.counts, least_effect)
        remarks += [f"counts have no noise, and they differ: {counted}"] if counted else []
        remarks += _of_hosts(slower_host(a.measurements, b.measurements))
    added_a, added_b = (_added_by_slow_steps(side) for side in (a, b))
    if verdict in {"same", "faster", "inconclusive"} and added_b > added_a + least_effect:
        remarks.append(
            f"a few steps of B take more than {SLOW_STEP:g} times its usual step and add {percent(1 + added_b)} to the "
            f"mean, in A {percent(1 + added_a)}; the gate's budget mean_step_ms limits it"
        )
    return remarks


def _added_by_slow_steps(side: ComparedRuns) -> float:
    """What steps that are far longer than the usual one add to the mean of all, as a share, in the median run."""
    added = []
    for run in side.measurements:
        lengths = run.step.lengths_ns / max(float(np.median(run.step.lengths_ns)), 1.0)
        added.append(float((lengths[lengths > SLOW_STEP] - 1).sum()) / len(lengths))
    return float(np.median(added))


def _of_recordings(a: ComparedRuns, b: ComparedRuns, least_effect: float) -> list[str]:
    remarks = []
    if a.step.has_steps == b.step.has_steps:
        for name, side in (("A", a), ("B", b)):
            steps = len(side.step.lengths_ns)
            if not side.step.has_steps:
                remarks.append(f"{name} has no steps: the whole recording is compared")
            elif steps < MIN_STEPS:
                remarks.append(f"{name} has {several(steps, 'warm step')}; record ten or more to see how steady it is")
    often = same_work.remark(a.step, b.step)
    remarks += [often] if often else []
    if a.timed != b.timed:
        timed, other = ("A", "B") if a.timed else ("B", "A")
        remarks.append(
            f"{timed} was timed without the profiler and {other} was not, or had not settled, so the recorded steps "
            "are compared; record both with warpline run, with a larger --skip if its steps still become faster"
        )
    runs = [*a.measurements, *b.measurements]
    drifts = [drift(run.step.lengths_ns.astype(np.float64), least_effect) for run in runs]
    largest = max((change for change in drifts if change is not None), key=abs, default=None)
    if largest is not None:
        remarks.append(f"steps change by {percent(1 + largest)} within a recording: clocks or memory drift")
    return remarks


def _more_runs(more: int | None, a: ComparedRuns, b: ComparedRuns) -> str:
    if more:
        return f"{several(more, 'more run')} on each side would probably settle it"
    is_waiting = any(2 * sum(side.step.idle_ns.values()) > side.step_ns for side in (a, b))
    why = "the GPU's waits differ too much between runs" if is_waiting else "the change is no larger than the noise"
    return f"not even {MORE_RUNS[-1]} more runs would settle it: {why}"


def _of_hosts(slower: float) -> list[str]:
    if abs(slower - 1) < MIN_HOST_DIFFERENCE:
        return []
    how, host = ("longer", "slower") if slower > 1 else ("less", "faster")
    change = f"{100 * abs(slower - 1):.0f} % {how}"
    return [f"a kernel launch takes {change} in B: its host was {host}, which also changes the waits for it"]


def _side(side: ComparedRuns) -> dict[str, Any]:
    return {
        "step_ns": side.step_ns,
        "stopwatch_ns": side.stopwatch_ns,
        "runs": side.runs,
        "steps": len(side.step.lengths_ns),
        "files": [run.file for run in side.measurements],
        "counts": {name: round(value, 3) for name, value in side.counts.items()},
    }
