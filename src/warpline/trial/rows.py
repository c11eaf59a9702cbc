"""A row of the answer, made from everything that was measured so far."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, median

from msgspec import Struct
from msgspec.structs import replace

from warpline.estimate import Estimate
from warpline.trial.answer import NOT_TRIED, LaterLoss, MemoryPeak, TriedFix
from warpline.trial.candidates import Candidate
from warpline.trial.judge import EARLY_TAIL, MIN_ROUNDS, MeasuredProcess, between_processes, gain_of
from warpline.trial.lines import lines_for
from warpline.trial.look import TimedSteps
from warpline.trial.process import LookReport, ProcessReport, TimedWindow
from warpline.trial.sameness import Sameness, compare_results

BASELINE = "baseline"
RESULTS_ONLY = " (results only)"
MIN_LATER_START_S = 3.0
"""A smaller difference of the starts is that of two processes."""


class Measured(Struct, frozen=True):
    """A process that came to its first window."""

    name: str
    group: int
    report: ProcessReport
    windows: tuple[TimedWindow, ...]
    per_round: int
    """Windows."""

    def timed(self) -> MeasuredProcess:
        """As the judge needs it."""
        return MeasuredProcess(self.name, self.group, timed_rounds(self.windows, self.per_round))


def timed_rounds(windows: Sequence[TimedWindow], per_round: int) -> tuple[float | None, ...]:
    """Seconds of a step in each whole round of so many windows; None where something was compiled in it."""
    whole = len(windows) // per_round * per_round
    rounds = [windows[first : first + per_round] for first in range(0, whole, per_round)]
    return tuple(None if any(one.compiled for one in some) else fmean(one.step_s for one in some) for some in rounds)


def combination_name(changes: Sequence[Candidate]) -> str:
    """The names joined."""
    return "+".join(one.name for one in changes)


def step_of_baseline(measured: Sequence[Measured], on_gpu: bool) -> Estimate | None:
    """Seconds of a step of the program as it is."""
    bases = [one.timed() for one in measured if one.name == BASELINE]
    known = [[step_s for step_s in one.steps_s if step_s is not None] for one in bases]
    medians = [median(steps_s) for steps_s in known if steps_s]
    if not medians:
        return None
    spread, _ = between_processes(BASELINE, bases, on_gpu)
    centre = fmean(map(math.log, medians))
    half = 2 * spread / math.sqrt(len(medians))
    return Estimate(math.exp(centre - half), math.exp(centre), math.exp(centre + half))


class TrialRecord(Struct, frozen=True):
    """What is known of the program and its processes so far."""

    look: LookReport
    steps: TimedSteps
    measured: Sequence[Measured]
    errors: Mapping[str, str]
    """Why it cannot apply or its process failed, by the name of what is tried."""
    predicted: Mapping[str, Estimate]
    """Gains by the fix's name."""


def row_of(changes: Sequence[Candidate], record: TrialRecord, claims: int, is_fresh: bool) -> TriedFix:
    """The row of a fix or of several together. `claims`: how many rows share the chance of a false one; `is_fresh`:
    whether only processes count that did not choose it."""
    name = combination_name(changes)
    does = " + ".join(one.change.does for one in changes)
    lines = "\n".join(one.change.lines for one in changes)
    fix = changes[0].fix if len(changes) == 1 else None
    part = "; ".join(one.change.part for one in changes if one.change.part)
    row = TriedFix(name, does, lines, fix, predicted=None if part else record.predicted.get(fix or ""), note=part)
    own = [one for one in record.measured if one.name == name]
    error = record.errors.get(name, "")
    if not own:
        return replace(row, why_not=error or NOT_TRIED)
    row = replace(row, proof=_proof(own, any(one.change.compiles for one in changes)))
    row = replace(row, lines="\n".join(lines_for(one.change, record.look.use, row.proof) for one in changes))
    if not row.proof:
        return replace(row, why_not="did not apply: it changed nothing in the program")
    row = replace(row, applied=True)
    measured_gain = gain_of(name, BASELINE, [one.timed() for one in record.measured], record.look.use.on_gpu)
    if measured_gain is None:
        compiled = any(window.compiled for one in own for window in one.windows)
        why = "something was compiled in the others" if compiled else "the program or the trial ended"
        return replace(row, why_not=error or f"not measured: fewer than {MIN_ROUNDS} whole rounds, {why}")
    verdict = measured_gain.verdict(claims=claims)
    note = f"one process failed: {error}" if error else part
    confirmed = verdict == "faster" and (is_fresh or len({one.group for one in own if one.windows}) > 1)
    if verdict == "faster" and not confirmed:
        verdict = measured_gain.verdict(EARLY_TAIL, claims)
        note = note or "not measured again in fresh processes"
    row = replace(row, gain=measured_gain.estimate(), verdict=verdict, confirmed=confirmed, note=note)
    return _with_side_effects(row, changes, own, record)


def _with_side_effects(
    row: TriedFix, changes: Sequence[Candidate], own: Sequence[Measured], record: TrialRecord
) -> TriedFix:
    """The row with what else the changes did: to results, memory, the start and the loss."""
    bases = [one for one in record.measured if one.name == BASELINE]
    later_start = _later_start(own, bases)
    step_s = step_of_baseline(record.measured, record.look.use.on_gpu)
    saved = step_s.expected * (1 - 1 / row.gain.expected) if step_s and row.gain else 0.0
    changes_batches = any(one.change.changes_batches for one in changes)
    if changes_batches:
        sameness = Sameness(None, "cannot tell: a loss is of more samples than before")
    else:
        sameness = _sameness(changes, own, bases, record)
    return replace(
        row,
        is_bound=any(one.change.is_bound for one in changes),
        sameness=sameness,
        memory=MemoryPeak(*(max(map(_memory, some)) for some in (bases, own))) if bases else None,
        later_start_s=later_start,
        pays_after_steps=math.ceil(later_start / saved)
        if later_start and row.verdict == "faster" and saved > 0
        else None,
        loss=None if changes_batches else _later_loss(own, bases),
        processes=len(own),
    )


def _sameness(
    changes: Sequence[Candidate], own: Sequence[Measured], bases: Sequence[Measured], record: TrialRecord
) -> Sameness:
    """Whether the results are those of the baselines."""
    name = combination_name(changes) + RESULTS_ONLY
    checked = next((one for one in record.measured if one.name == name), own[0])
    draws_otherwise = any(one.change.draws_otherwise for one in changes)
    return compare_results(
        record.steps.result,
        [one.report.results for one in bases],
        record.look.results,
        checked.report.results,
        next((one.change.precision for one in changes if one.change.precision), ""),
        draws_otherwise and record.look.use.random_ops > 0 and checked is own[0],
    )


def _proof(own: Sequence[Measured], compiles: bool) -> tuple[str, ...]:
    """What was changed, in words; none if nothing was."""
    last = own[0].windows[-1] if own[0].windows else own[0].report
    said = [f"{what}: {count:,}" if count > 1 else what for what, count in last.proof.items()]
    if not compiles or not said:
        return tuple(said)
    graphs, breaks = last.compile.get("graphs", 0), last.compile.get("breaks", 0)
    if not graphs:
        return ()
    said.append(f"{graphs} graphs, {breaks} breaks" + "".join(f" ({reason})" for reason in last.compile["reasons"][:1]))
    if last.compile.get("seconds"):
        said.append(f"{last.compile['seconds']:.0f} s of compilation")
    return tuple(said)


def _memory(one: Measured) -> int:
    last = one.windows[-1] if one.windows else one.report
    return last.gpu_bytes or last.host_bytes


def _later_start(own: Sequence[Measured], bases: Sequence[Measured]) -> float | None:
    """How much later the first process was ready than the baselines that started with it."""
    first = own[0]
    before = [one.report.ready_after_s for one in bases if one.group == first.group and one.report.ready_after_s]
    if not before or first.report.ready_after_s is None:
        return None
    later = first.report.ready_after_s - fmean(before)
    return round(later, 1) if later >= MIN_LATER_START_S else None


def _later_loss(own: Sequence[Measured], bases: Sequence[Measured]) -> LaterLoss | None:
    """The loss at the end of the last window that both have."""
    for one in own:
        for base in bases:
            pairs = [
                LaterLoss(a.last_step, a.loss, b.loss)
                for a, b in zip(base.windows, one.windows, strict=False)
                if a.loss is not None and b.loss is not None
            ]
            if pairs:
                return pairs[-1]
    return None
