"""A session: the first run looks, then groups of processes are measured, then what won is measured again.

What looks faster is measured again in fresh processes, together with combinations, and judged by these alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from warpline.estimate import SHOWN_GAIN, Estimate
from warpline.trial.answer import TrialAnswer, TriedFix
from warpline.trial.candidates import NOTHING, Candidate
from warpline.trial.first_look import MayWrite, look_at_program
from warpline.trial.groups import LAST_SHARE, Show, StopTrial, VariantGroups
from warpline.trial.judge import MAX_GROUPS, WORTH_HAVING
from warpline.trial.rows import BASELINE, TrialRecord, combination_name, row_of, step_of_baseline
from warpline.trial.variants import Say, SeenProgram, Variant, VariantProcesses
from warpline.units import several

CONFIRM_SHARE = 0.7
"""Part of what is left of the budget that measuring again may take."""
MAX_WINNERS = 6
BUDGET_STEP = 1.5
"""A budget that was too short was so by half at least: what it had no time for is not known exactly."""
FEW = 6
"""So many are measured in one group."""


class TrialRequest(Struct, frozen=True):
    """What to try, and for how long."""

    command: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    budget_s: float
    predicted: Mapping[str, Estimate] = field(default_factory=dict)
    """The predicted speed-up by the fix's name."""
    max_groups: int = MAX_GROUPS
    """In which a variant is measured: an open verdict after so many stays open."""
    working_folder: Path = field(default_factory=Path.cwd)
    """Each process runs in a copy of it."""


def run_trial(
    request: TrialRequest, say: Say, may_write: MayWrite = None, show: Show = lambda rows: None
) -> TrialAnswer:
    """One `warpline try`; whatever ends it early, what is known is answered."""
    processes = VariantProcesses(request.command, request.working_folder, request.budget_s)
    stopped = ""
    try:
        program = look_at_program(processes, request.candidates, may_write, say)
        session = TrialSession(request, program, VariantGroups(processes, program, say, show), say)
        try:
            session.measure_all()
        except StopTrial:
            stopped = f"the budget of {request.budget_s:.0f} s is over ({session.needs()})"
        except KeyboardInterrupt:
            stopped = "interrupted"
    finally:
        processes.end_all()
    return session.answer(stopped, processes.taken_s)


class TrialSession:
    """What is measured when, and the answer that follows."""

    def __init__(self, request: TrialRequest, program: SeenProgram, groups: VariantGroups, say: Say) -> None:
        self._request, self._program, self._groups, self._say = request, program, groups, say
        self._why_not: dict[str, str] = {}
        self._applicable = 0
        """How many candidates can apply."""
        self._combinations: list[tuple[Candidate, ...]] = []
        self._fresh_since: dict[str, int] = {}
        """The first group after the choice of what looks faster, by name."""

    def measure_all(self) -> None:
        """Groups of the candidates, then what looks faster again, then what is still open."""
        look = self._program.look
        open_ = []
        for one in self._request.candidates:
            why = one.change.why_not(look.use)
            if why:
                self._why_not[one.name] = f"did not apply: {why}"
            else:
                open_.append(one)
        self._applicable = len(open_)
        if self._groups.enough_s(self._applicable) > self._request.budget_s:
            self._say(self.needs())
        # Compilers start late, so the others do not wait for them, unless another start takes longer than that.
        few = len(open_) <= FEW
        quick = [one for one in open_ if not one.change.compiles and not few]
        slow = [one for one in open_ if one.change.compiles or few]
        if quick or not slow:
            self._groups.measure([Variant((one,)) for one in quick])
        if slow:
            checks = [one for one in slow if one.change.compiles and one.change.draws_otherwise and look.use.random_ops]
            self._groups.measure(
                [Variant((one,)) for one in slow] + [Variant((one,), only_results=True) for one in checks]
            )
        self._confirm(open_)
        self._settle_open(open_)
        if self._groups.left_out:
            raise StopTrial

    def needs(self) -> str:
        """What the budget lacks time for, and which would have it."""
        budget_s = max(self._groups.enough_s(self._applicable), BUDGET_STEP * self._request.budget_s)
        budget = f"--budget {math.ceil(budget_s / 60)}m has time for {several(self._applicable, 'fix', 'fixes')}"
        return f"starting the program takes about {self._program.took_s:.0f} s here; {budget}"

    def _confirm(self, tried: Sequence[Candidate]) -> None:
        """Measure what looks faster again, in fresh processes, together with combinations of it."""
        likely = []
        for one in tried:
            row = self._row(one)
            if row.gain is None or not row.applied or row.is_bound:
                continue
            if row.gain.low > 1 or (row.verdict == "inconclusive" and row.gain.expected >= WORTH_HAVING):
                likely.append((row.gain.expected, one))
        winners = [one for _, one in sorted(likely, key=lambda pair: -pair[0])][:MAX_WINNERS]
        if not winners or self._request.max_groups == 1:
            return
        chosen: list[Candidate] = []
        for one in winners:
            row = self._row(one)
            # A combination is of what is known to gain by itself; one compiler is enough.
            if (
                one.change is not NOTHING
                and row.gain is not None
                and row.gain.low > 1
                and not (one.change.compiles and any(other.change.compiles for other in chosen))
            ):
                chosen.append(one)
                if len(chosen) > 1:
                    self._combinations.append(tuple(chosen))
        variants = [Variant(some) for some in (*((one,) for one in winners), *self._combinations)]
        in_time = self._groups.in_time(variants)
        if in_time < len(variants):
            variants = variants[: min(in_time, len(winners))]
            self._combinations.clear()
        if not variants:
            return
        self._fresh_since = {one.name: self._groups.count + 1 for one in variants}
        self._say("measuring what looks faster again, in fresh processes")
        self._groups.measure(variants, share=CONFIRM_SHARE)

    def _settle_open(self, tried: Sequence[Candidate]) -> None:
        """More processes for what is still open, while the budget lasts; where it is short, for the largest gains."""
        for _ in range(self._request.max_groups - 2):
            rows = [(self._row(one), one) for one in tried]
            open_ = [(row.gain.expected, one) for row, one in rows if row.verdict == "inconclusive" and row.gain]
            unsure = [Variant((one,)) for _, one in sorted(open_, key=lambda pair: -pair[0])]
            unsure = unsure[: self._groups.in_time(unsure)]
            if not unsure:
                return
            self._say(f"measuring what is still open again: {', '.join(one.name for one in unsure)}")
            self._groups.measure(unsure, share=LAST_SHARE)

    def _row(self, *changes: Candidate) -> TriedFix:
        """What is chosen because it looks faster is judged by the processes after that choice, once there are any."""
        name = combination_name(changes)
        since = self._fresh_since.get(name, 0)
        fresh = [one for one in self._groups.measured if one.name != name or one.group >= since]
        is_fresh = bool(since) and any(one.name == name and one.windows for one in fresh)
        measured = fresh if is_fresh else self._groups.measured
        errors = {**self._why_not, **self._groups.errors}
        record = TrialRecord(self._program.look, self._program.steps, measured, errors, self._request.predicted)
        claims = len(self._fresh_since) if is_fresh else len(self._request.candidates) - len(self._why_not)
        return row_of(changes, record, claims, is_fresh)

    def answer(self, stopped: str, seconds: float) -> TrialAnswer:
        """What is known; `stopped` says what ended it early."""
        look, steps = self._program.look, self._program.steps
        rows = [self._row(*some) for some in (*((one,) for one in self._request.candidates), *self._combinations)]
        baseline = step_of_baseline(self._groups.measured, look.use.on_gpu)
        return TrialAnswer(
            command=self._request.command,
            step=steps.words,
            baseline_s=baseline,
            baseline_processes=sum(one.name == BASELINE and bool(one.windows) for one in self._groups.measured),
            windows=max((len(one.windows) for one in self._groups.measured), default=0),
            steps_per_window=steps.per_window,
            tries=tuple(rows),
            best=best_of(rows),
            use=look.use,
            seconds=seconds,
            stopped=stopped,
        )


def best_of(rows: Sequence[TriedFix]) -> tuple[str, ...]:
    """The fixes of the fastest row that is known to be faster; a longer combination only if it gains noticeably.
    A row without lines to write changes nothing."""
    faster = [
        row for row in rows if row.verdict == "faster" and row.gain is not None and row.lines and not row.is_bound
    ]
    single = {row.name for row in faster}
    faster = [row for row in faster if all(name in single for name in row.name.split("+"))]
    best: TriedFix | None = None
    for row in sorted(faster, key=lambda one: one.name.count("+")):
        if (
            best is None
            or best.gain is None
            or row.gain is None
            or (
                row.gain.expected
                > (SHOWN_GAIN if row.name.count("+") > best.name.count("+") else 1.0) * best.gain.expected
            )
        ):
            best = row
    return tuple(best.name.split("+")) if best else ()
