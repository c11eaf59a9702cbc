"""A session: the first run looks, then groups of processes are measured by turns, then what won is measured again.

The processes of a group start together and wait at a gate. Then one at a time runs a window of steps while the others
are stopped, round by round, so that drift of the machine meets all alike. Where memory holds only one process, they run
one after the other, a baseline first and last. Each group has baselines of its own. What looks faster is measured again
in fresh processes, together with combinations, and judged by these alone.
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from warpline.capture.launch import forwarding_environment
from warpline.capture.run import INJECTED
from warpline.capture.this_process import usable_cores
from warpline.capture.trial.plan import VARIABLE, TrialPlan
from warpline.errors import WarplineError
from warpline.estimate import SHOWN_GAIN, Estimate
from warpline.trial.answer import TrialAnswer, TriedFix
from warpline.trial.candidates import NOTHING, Candidate
from warpline.trial.judge import EARLY_TAIL, MAX_GROUPS, WORTH_HAVING, MeasuredProcess, gain_of
from warpline.trial.live import LiveRow, live_rows
from warpline.trial.look import ROUNDS, TimedSteps, alive_together, timed_steps
from warpline.trial.process import LookReport, VariantProcess
from warpline.trial.rows import (
    BASELINE,
    RESULTS_ONLY,
    Measured,
    TrialRecord,
    combination_name,
    row_of,
    step_of_baseline,
    timed_windows,
)
from warpline.trial.working_copy import from_anywhere, make_working_copy

MAX_ALIVE = 24
POLL_S = 0.004
MIN_BASELINES, USUAL_BASELINES = 2, 3
"""Of each group, where memory is short and where it is not: their difference shows what no change at all does."""
MIN_START_S, START_FACTOR = 30.0, 5.0
"""A process is taken to hang after so many times what the first run took, and longer where several share a core."""
COMPILE_START_S = 180.0
"""Likewise what a compiler may take."""
WINDOW_GRACE_S = 30.0
LOOK_EVERY = 4
"""Rounds after which a variant that is decided is left out."""
GROUP_SHARE, CONFIRM_SHARE, LAST_SHARE = 0.5, 0.7, 0.95
"""Part of what is left of the budget that a group may take: while others will follow, may follow, and will not."""
CRASHED = "program-failed"
MAX_WINNERS = 6
FEW = 6
"""So many are measured in one group."""
PREFETCH = "prefetch"
"""The change by which a loader has more batches ready."""
STANDALONE = "--standalone"
"""The option of torchrun that chooses a free port."""


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


class Variant(Struct, frozen=True):
    """The program with some changes, of which one process is started; without changes, the program as it is."""

    changes: tuple[Candidate, ...] = ()
    only_results: bool = False
    """Whether it runs for its results alone, with random numbers as without a compiler."""

    @property
    def name(self) -> str:
        """As the rows name it."""
        return (combination_name(self.changes) or BASELINE) + RESULTS_ONLY * self.only_results


class SeenProgram(Struct, frozen=True):
    """What the first run showed."""

    look: LookReport
    steps: TimedSteps
    took_s: float
    """How long it ran until it had shown it."""

    @property
    def start_s(self) -> float:
        """So long may a process take until it is ready."""
        return max(MIN_START_S, START_FACTOR * self.took_s)


class StopTrial(Exception):
    """The budget is over."""


Say = Callable[[str], None]
Show = Callable[[tuple[LiveRow, ...]], None]


class TrialSession:
    """One `warpline try`."""

    def __init__(
        self,
        request: TrialRequest,
        say: Say,
        may_write: Callable[[str], bool] | None = None,
        show: Show = lambda rows: None,
    ) -> None:
        """`may_write` is asked before the program writes its first file outside its folder; without, it may. `show`
        gets the processes of a group as they start, and before each window."""
        self._request, self._say, self._may_write, self._show = request, say, may_write, show
        self._began = time.monotonic()
        self._folder = Path(tempfile.mkdtemp(prefix="warpline-try-"))
        self._alive: list[VariantProcess] = []
        self._measured: list[Measured] = []
        self._errors: dict[str, str] = {}
        self._why_not: dict[str, str] = {}
        self._combinations: list[tuple[Candidate, ...]] = []
        self._fresh_since: dict[str, int] = {}
        self._groups = 0
        self._number = 0
        self._seen: SeenProgram | None = None
        self._ready_s = 0.0
        """What the processes of the last group took until all were ready."""

    def run(self) -> TrialAnswer:
        """Do all of it; whatever ends it early, what is known is answered."""
        stopped = ""
        try:
            self._first_look()
            self._measure_all()
        except StopTrial:
            stopped = f"the budget of {self._request.budget_s:.0f} s is over"
        except KeyboardInterrupt:
            stopped = "interrupted"
        finally:
            for process in self._alive:
                process.end()
            shutil.rmtree(self._folder, ignore_errors=True)
        if self._seen is None:
            raise WarplineError("no-answer", stopped or "the first run showed nothing", "give it a larger --budget")
        return self._answer(stopped)

    @property
    def _program(self) -> SeenProgram:
        """What the first run showed; nothing is measured before it."""
        assert self._seen is not None
        return self._seen

    # Processes.

    def _left_s(self) -> float:
        return self._request.budget_s - (time.monotonic() - self._began)

    def _start(self, variant: Variant, together: int = 1, **more: object) -> VariantProcess:
        """Start one of so many processes that start together."""
        self._number += 1
        folder = self._folder / str(self._number)
        folder.mkdir()
        working_copy = folder / "work"
        make_working_copy(self._request.working_folder, working_copy, self._folder)
        request, seen, changes = self._request, self._seen, variant.changes
        compiles = any(one.change.compiles for one in changes)
        per_core = max(1.0, together / usable_cores())
        limit_s = per_core * ((seen.start_s if seen else MIN_START_S) + COMPILE_START_S * compiles)
        settings: dict[str, object] = {"hang_after_s": 0.9 * limit_s, "eager_random": variant.only_results}
        if seen is not None:
            settings |= {
                "step": seen.steps.step,
                "skip": seen.steps.skip,
                "settle": seen.steps.settle,
                "steps_per_window": seen.steps.per_window,
            }
        plan = TrialPlan(
            str(folder),
            os.getpid(),
            time.time(),
            tuple(one.name for one in changes),
            working_copy=str(working_copy),
            **{**settings, **more},  # type: ignore[arg-type]
        )
        environment = forwarding_environment({**os.environ, VARIABLE: plan.to_text()}, INJECTED)
        environment |= {
            "PYTHONHASHSEED": "0",
            "TORCHINDUCTOR_CACHE_DIR": str(self._folder / "inductor"),
            "TRITON_CACHE_DIR": str(self._folder / "triton"),
        }
        for one in changes:
            environment |= one.change.environment
        try:
            command = from_anywhere(request.command, request.working_folder)
            process = VariantProcess(variant.name, folder, command, environment, working_copy)
        except OSError as error:
            raise WarplineError("cannot-run", f"{request.command[0]} could not be started: {error.strerror}") from error
        process.limit_s = limit_s
        self._alive.append(process)
        return process

    def _end(self, processes: Sequence[VariantProcess]) -> None:
        for process in processes:
            process.end()
            if process in self._alive:
                self._alive.remove(process)

    def _first_look(self) -> None:
        """Run the program once, as a rounding twin: which steps it makes, and what it uses."""
        try:
            self._look_at_program(counts=True)
        except WarplineError as error:
            if error.code != CRASHED:
                raise
            self._look_at_program(counts=False)

    def _look_at_program(self, counts: bool) -> None:
        """`counts`: count ops, which a program may not stand."""
        look_s = min(6.0, self._request.budget_s / 20)
        process = self._start(
            Variant(),
            is_twin=True,
            look_s=look_s,
            hang_after_s=self._request.budget_s / 3,
            counts=counts,
            asks=self._may_write is not None,
        )
        self._say("looking at the program")
        while (look := process.looked()) is None:
            if process.is_over:
                break
            if path := process.asks_to_write():
                asked = time.monotonic()
                if self._may_write is None or not self._may_write(path):
                    raise WarplineError("not-started", "nothing was written or tried", "add --yes to permit it")
                process.permit_writing()
                self._began += time.monotonic() - asked
            if self._left_s() < self._request.budget_s / 2:
                process.fail_late(time.monotonic() - process.started)
                raise WarplineError("no-steps", f"the program as it is: {process.error}", "give it a larger --budget")
            time.sleep(POLL_S)
        look = process.looked()
        if look is None or (look.ended and process.has_failed()):
            process.fail_by_itself()
            reason = process.problem() or process.error
            self._end([process])
            raise WarplineError(
                CRASHED if process.has_failed() else "no-steps", f"the program as it is could not be measured: {reason}"
            )
        took = time.monotonic() - process.started
        self._end([process])
        loads_ahead = any(
            one.change.name == PREFETCH and not one.change.why_not(look.use) for one in self._request.candidates
        )
        steps = timed_steps(look, loads_ahead)
        self._seen = SeenProgram(look, steps, took)
        self._say(f"step: {steps.words}, about {steps.step_s * 1e3:.3g} ms; looked for {took:.0f} s")

    def _group(self, variants: Sequence[Variant], share: float = GROUP_SHARE) -> None:
        """Measure some variants against baselines of their own, for a share of what is
        left of the budget."""
        look = self._program.look
        self._groups += 1
        began = time.monotonic()
        room = alive_together(look, _free_host_bytes(), MAX_ALIVE)
        # Launchers of several ranks take one and the same port, unless they are told to choose a free one.
        has_own_port = look.use.world_size == 1 or STANDALONE in self._request.command
        if room > MIN_BASELINES and has_own_port:
            parts = math.ceil(len(variants) / (room - MIN_BASELINES)) if variants else 1
            size = math.ceil(len(variants) / parts)
            for part in range(parts):
                self._groups += bool(part)
                until = began + share * (self._left_s() + time.monotonic() - began) * (part + 1) / parts
                some = variants[part * size : (part + 1) * size]
                self._together(some, min(room - len(some), baselines_for(len(some))), until)
        else:
            self._one_by_one(variants)

    def _together(self, variants: Sequence[Variant], baselines: int, until: float) -> None:
        steps = self._program.steps
        names = [BASELINE] * baselines + [one.name for one in variants]
        most = f"at most {math.ceil(self._left_s() / 60)} min (--budget)"
        self._say(f"starting {len(names)} processes, {most}: {', '.join(names)}")
        together = len(names)
        group = [self._start(Variant(), together) for _ in range(baselines)]
        group += [self._start(one, together) for one in variants]
        try:
            started = time.monotonic()
            self._until_ready(group)
            self._ready_s = time.monotonic() - started
            runs = [one for one in group if not one.is_over and not one.name.endswith(RESULTS_ONLY)]
            bases = [one for one in runs if one.name == BASELINE]
            others = [one for one in runs if one.name != BASELINE]
            order = spread_out(bases, others)
            for turn in range(1, steps.windows + 1):
                if all(one.is_over for one in bases) or all(one.is_over for one in others or bases):
                    break
                began = time.monotonic()
                for process in order if turn % 2 else order[::-1]:  # the order turns round in each round
                    if not process.is_over:
                        self._show(live_rows(group, process, order))
                        self._window(process)
                if turn == 1 or turn % ROUNDS == 0:
                    self._report_round(turn, order)
                if turn % LOOK_EVERY == 0:
                    open_ = {one.name for one in others if self._is_open(one.name, group)}
                    order = [one for one in order if one.name in open_ or one.name == BASELINE]
                    if not open_:
                        break
                if turn >= LOOK_EVERY and 2 * time.monotonic() - began > until:
                    break
        finally:
            self._keep(group)

    def _is_open(self, name: str, group: Sequence[VariantProcess]) -> bool:
        """Whether more windows may change the verdict: less than beyond doubt is open."""
        now = [MeasuredProcess(one.name, self._groups, timed_windows(one.windows)) for one in group]
        before = [one.timed() for one in self._measured]
        gain = gain_of(name, BASELINE, [*before, *now], self._program.look.use.on_gpu)
        return gain is not None and gain.verdict(EARLY_TAIL) == "inconclusive"

    def _one_by_one(self, variants: Sequence[Variant]) -> None:
        steps = self._program.steps
        for one in [Variant(), *variants, Variant()]:
            process = self._start(one)
            try:
                self._until_ready([process])
                for _ in range(0 if one.only_results else min(steps.windows, 2 * ROUNDS)):
                    if not process.is_over:
                        self._show(live_rows([process], process, [process]))
                        self._window(process)
                self._report_round(len(process.windows), [process])
            finally:
                self._keep([process])

    def _until_ready(self, group: Sequence[VariantProcess]) -> None:
        waiting = list(group)
        shown = 0
        while waiting:
            if shown != len(waiting):
                self._show(live_rows(group, None, group))
                shown = len(waiting)
            for process in list(waiting):
                if process.is_ready():
                    process.pause()
                    waiting.remove(process)
                    if process.problem():
                        process.fail(f"could not be made: {process.problem()}")
                elif process.is_over:
                    process.fail_by_itself()
                    waiting.remove(process)
                elif (late_s := time.monotonic() - process.started) > min(process.limit_s, self._patience_s(process)):
                    process.fail_late(late_s)
                    waiting.remove(process)
                if process.error:
                    self._say(f"{process.name} {process.error}")
            if self._left_s() < 0:
                raise StopTrial
            time.sleep(POLL_S)

    def _patience_s(self, process: VariantProcess) -> float:
        """A compiler may take half of what is left of the budget, but not less than the program as it is."""
        return max(2 * self._program.took_s, (time.monotonic() - process.started + self._left_s()) / 2)

    def _window(self, process: VariantProcess) -> None:
        steps = self._program.steps
        if self._left_s() < 0:
            raise StopTrial
        until = time.monotonic() + 20 * steps.step_s * (steps.per_window + steps.settle) + WINDOW_GRACE_S
        process.run_window()
        while not process.has_window():
            if process.is_over:
                if not process.has_window():
                    process.fail_by_itself()
                return
            if time.monotonic() > until:
                process.fail("hung: a window of steps did not end")
                return
            time.sleep(POLL_S)
        process.pause()

    def _keep(self, group: Sequence[VariantProcess]) -> None:
        """Keep what the processes measured, and end them."""
        for process in group:
            process.is_ready()
            if process.error and process.name != BASELINE:
                self._errors.setdefault(process.name, process.error)
            if process.report is not None:
                self._measured.append(Measured(process.name, self._groups, process.report, tuple(process.windows)))
        self._end(group)

    def _report_round(self, turn: int, group: Sequence[VariantProcess]) -> None:
        times = ", ".join(
            f"{one.name} {1e3 * one.windows[-1].step_s:.3g} ms" for one in group if one.windows and not one.error
        )
        self._say(f"round {turn}: {times}")

    # What is measured when.

    def _measure_all(self) -> None:
        look = self._program.look
        open_ = []
        for one in self._request.candidates:
            why = one.change.why_not(look.use)
            if why:
                self._why_not[one.name] = why
            else:
                open_.append(one)
        # Compilers start late, so the others do not wait for them, unless another start takes longer than that.
        few = len(open_) <= FEW
        quick = [one for one in open_ if not one.change.compiles and not few]
        slow = [one for one in open_ if one.change.compiles or few]
        if quick or not slow:
            self._group([Variant((one,)) for one in quick])
        if slow:
            checks = [one for one in slow if one.change.compiles and look.use.random_ops]
            self._group([Variant((one,)) for one in slow] + [Variant((one,), only_results=True) for one in checks])
        self._confirm(open_)
        self._settle_open(open_)

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
        if not self._has_time_for(len(variants)):
            variants = variants[: len(winners)]
            self._combinations.clear()
        if not self._has_time_for(len(variants)):
            return
        self._fresh_since = {one.name: self._groups + 1 for one in variants}
        self._say("measuring what looks faster again, in fresh processes")
        self._group(variants, share=CONFIRM_SHARE)

    def _settle_open(self, tried: Sequence[Candidate]) -> None:
        """More processes for what is still open, while the budget lasts."""
        for _ in range(self._request.max_groups - 2):
            unsure = [one for one in tried if (row := self._row(one)).verdict == "inconclusive" and row.applied]
            if not unsure or not self._has_time_for(len(unsure)):
                return
            self._say(f"measuring what is still open again: {', '.join(one.name for one in unsure)}")
            self._group([Variant((one,)) for one in unsure], share=LAST_SHARE)

    def _has_time_for(self, variants: int) -> bool:
        """Whether so many can be started and measured in enough rounds for a first verdict."""
        steps = self._program.steps
        window_s = 1.1 * steps.step_s * (steps.settle + steps.per_window)
        return self._left_s() > self._ready_s + LOOK_EVERY * (variants + baselines_for(variants)) * window_s

    # The answer.

    def _row(self, *changes: Candidate) -> TriedFix:
        """What is chosen because it looks faster is judged by the processes after that choice, once there are any."""
        name = combination_name(changes)
        since = self._fresh_since.get(name, 0)
        fresh = [one for one in self._measured if one.name != name or one.group >= since]
        is_fresh = bool(since) and any(one.name == name and one.windows for one in fresh)
        measured = fresh if is_fresh else self._measured
        record = TrialRecord(self._program.look, self._program.steps, measured, self._errors, self._request.predicted)
        claims = len(self._fresh_since) if is_fresh else len(self._request.candidates) - len(self._why_not)
        return row_of(changes, record, claims, is_fresh)

    def _answer(self, stopped: str) -> TrialAnswer:
        look, steps = self._program.look, self._program.steps
        rows = []
        for one in self._request.candidates:
            why = self._why_not.get(one.name)
            if why:
                predicted = self._request.predicted.get(one.fix or "")
                rows.append(
                    TriedFix(
                        one.name,
                        one.change.does,
                        one.change.lines,
                        one.fix,
                        why_not=f"did not apply: {why}",
                        predicted=predicted,
                    )
                )
            else:
                rows.append(self._row(one))
        rows += [self._row(*some) for some in self._combinations]
        baseline = step_of_baseline(self._measured, look.use.on_gpu)
        return TrialAnswer(
            command=self._request.command,
            step=steps.words,
            baseline_s=baseline,
            baseline_processes=sum(one.name == BASELINE and bool(one.windows) for one in self._measured),
            windows=max((len(one.windows) for one in self._measured), default=0),
            steps_per_window=steps.per_window,
            tries=tuple(rows),
            best=best_of(rows),
            use=look.use,
            seconds=time.monotonic() - self._began,
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


def baselines_for(variants: int) -> int:
    """With the square root of as many as there are variants, the differences are known best for the time they take
    (Dunnett, J. Am. Stat. Assoc. 50, 1955)."""
    return max(USUAL_BASELINES, round(math.sqrt(variants)))


def spread_out(bases: Sequence[VariantProcess], others: Sequence[VariantProcess]) -> list[VariantProcess]:
    """The order of a round: baselines at equal distances."""
    order = list(others)
    for number, base in enumerate(bases):
        order.insert(number + round(number * len(others) / max(len(bases), 1)), base)
    return order


def _free_host_bytes() -> int:
    """Memory that is free on this machine; much if it does not say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        return 1 << 40
