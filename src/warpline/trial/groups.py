"""Groups of processes, each measured by turns against baselines of its own.

The processes of a group start together and wait at a gate. Then one at a time runs a window of steps while the others
are stopped, by turns, so that drift of the machine meets all alike; a round has some windows of each. Where memory
holds only one process, they run one after the other, a baseline first and last.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path

from warpline.capture.this_process import usable_cores
from warpline.trial.judge import EARLY_TAIL, MeasuredProcess, gain_of
from warpline.trial.live import LiveRow, live_rows
from warpline.trial.look import ROUNDS, alive_together
from warpline.trial.process import VariantProcess
from warpline.trial.rows import BASELINE, RESULTS_ONLY, Measured, timed_rounds
from warpline.trial.variants import POLL_S, Say, SeenProgram, Variant, VariantProcesses
from warpline.units import duration

MAX_ALIVE = 24
MIN_BASELINES, USUAL_BASELINES = 2, 3
"""Of each group, where memory is short and where it is not: their difference shows what no change at all does."""
PATIENCE = 1.5
"""So many times the start of the program as it is is waited for at least."""
WINDOW_GRACE_S, WINDOW_POLL_S = 30.0, 0.001
"""Until a process is stopped at the end of its window, the workers of its loader run ahead."""
LOOK_EVERY = 4
"""Rounds after which a variant that is decided is left out."""
GROUP_SHARE, LAST_SHARE = 0.5, 0.95
"""Part of what is left of the budget that a group may take: while others may follow, and will not."""
START_SHARE = 0.5
"""Part of a group's time that its processes may take to start."""
Show = Callable[[tuple[LiveRow, ...]], None]
"""Gets the processes of a group as they start, and before each round."""


class StopTrial(Exception):
    """The budget is over."""


class VariantGroups:
    """All groups of one `warpline try`, and what they measured."""

    def __init__(self, processes: VariantProcesses, program: SeenProgram, say: Say, show: Show) -> None:
        self._processes, self._program, self._say, self._show = processes, program, say, show
        self.count = 0
        """The number of groups so far; the last one has this number."""
        self.measured: list[Measured] = []
        self.errors: dict[str, str] = {}
        """Why a process failed, by the name of what it tried."""
        self._windows_run = 0
        self._starts_s = {BASELINE: program.took_s}
        """What each took at most until it was ready, or so far, by name."""
        self._start_each_s = program.took_s / starting_at_once(program.look.use.world_size)
        """What each of many processes adds to the time in which they start."""
        self.left_out = False
        """Whether the budget had no time to start some variants."""

    def measure(self, variants: Sequence[Variant], share: float = GROUP_SHARE) -> None:
        """Measure some variants against baselines of their own, for a share of what is left of the budget."""
        look = self._program.look
        self.count += 1
        began = time.monotonic()
        starts = started_within(share * self._processes.left_s, self._program.took_s, look.use.world_size)
        room = min(alive_together(look, _free_host_bytes(), MAX_ALIVE), starts)
        if room > MIN_BASELINES:
            parts = math.ceil(len(variants) / (room - MIN_BASELINES)) if variants else 1
            size = math.ceil(len(variants) / parts)
            for part in range(parts):
                some = variants[part * size : (part + 1) * size]
                if (part or self.count > 1) and self.in_time(some) < len(some):
                    self.left_out, some = True, some[: self.in_time(some)]
                    if not some:
                        return
                self.count += bool(part)
                until = began + share * (self._processes.left_s + time.monotonic() - began) * (part + 1) / parts
                self._together(some, min(room - len(some), baselines_for(len(some))), until)
        else:
            self._one_by_one(variants)

    def _together(self, variants: Sequence[Variant], baselines: int, until: float) -> None:
        names = [BASELINE] * baselines + [one.name for one in variants]
        most = f"at most {duration(1e9 * self._processes.left_s)} (what is left of --budget)"
        self._say(f"starting {len(names)} processes, {most}: {', '.join(names)}")
        together = len(names)
        group = [self._processes.start(Variant(), self._program, together) for _ in range(baselines)]
        group += [self._processes.start(one, self._program, together) for one in variants]
        try:
            self.until_ready(group)
            self._run_rounds(group, self._end(until))
        finally:
            self._keep(group)

    def _run_rounds(self, group: Sequence[VariantProcess], until: float) -> None:
        """Rounds of windows, until the verdicts are clear, the steps are over, or the time is."""
        runs = [one for one in group if not one.is_over and not one.name.endswith(RESULTS_ONLY)]
        bases = [one for one in runs if one.name == BASELINE]
        others = [one for one in runs if one.name != BASELINE]
        order = spread_out(bases, others)
        for number in range(1, self._program.steps.rounds + 1):
            if all(one.is_over for one in bases) or all(one.is_over for one in others or bases):
                return
            began = time.monotonic()
            self._show(live_rows(group, order))
            self.run_round(order)
            if number == 1 or number % ROUNDS == 0:
                self._report_round(number, order)
            if number % LOOK_EVERY == 0:
                open_ = {one.name for one in others if self._is_open(one.name, group)}
                order = [one for one in order if one.name in open_ or one.name == BASELINE]
                if not open_:
                    return
            if number >= LOOK_EVERY and 2 * time.monotonic() - began > until:
                return

    def _end(self, until: float) -> float:
        """When a group ends that may last until then: later where what is left of the budget holds no other group."""
        now = time.monotonic()
        next_s = self._starts_s[BASELINE] + self._first_verdicts_s(1)
        holds_other = now + self._processes.left_s > max(now, until) + next_s
        return until if holds_other else now + LAST_SHARE * self._processes.left_s

    def run_round(self, order: Sequence[VariantProcess]) -> None:
        """Windows by turns; the order reverses with each."""
        for _ in range(self._program.steps.per_round):
            self._windows_run += 1
            for process in order if self._windows_run % 2 else order[::-1]:
                if not process.is_over:
                    self._window(process)

    def _is_open(self, name: str, group: Sequence[VariantProcess]) -> bool:
        """Whether more windows may change the verdict: less than beyond doubt is open."""
        per_round = self._program.steps.per_round
        now = [MeasuredProcess(one.name, self.count, timed_rounds(one.windows, per_round)) for one in group]
        before = [one.timed() for one in self.measured]
        gain = gain_of(name, BASELINE, [*before, *now], self._program.look.use.on_gpu)
        return gain is not None and gain.verdict(EARLY_TAIL) == "inconclusive"

    def _one_by_one(self, variants: Sequence[Variant]) -> None:
        steps = self._program.steps
        for one in [Variant(), *variants, Variant()]:
            process = self._processes.start(one, self._program)
            try:
                self.until_ready([process])
                rounds = 0 if one.only_results else min(steps.rounds, 2 * ROUNDS)
                for _ in range(rounds):
                    self._show(live_rows([process], [process]))
                    self.run_round([process])
                self._report_round(rounds, [process])
            finally:
                self._keep([process])

    def until_ready(self, group: Sequence[VariantProcess]) -> None:
        """Wait until each stands before its first window, or has failed."""
        waiting = list(group)
        shown = 0
        while waiting:
            for process in waiting:
                start_s = time.monotonic() - process.started
                self._starts_s[process.name] = max(self._starts_s.get(process.name, 0.0), start_s)
                self._start_each_s = max(self._start_each_s, start_s / len(group))
            if shown != len(waiting):
                self._show(live_rows(group, group))
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
                elif (late_s := time.monotonic() - process.started) > process.limit_s:
                    process.fail_late(late_s)
                    waiting.remove(process)
                elif late_s > self._patience_s(process) and not any(one.name == BASELINE for one in waiting):
                    process.fail(f"not ready after {late_s:.0f} s, and the budget has no time for more: make it larger")
                    waiting.remove(process)
                if process.error:
                    self._say(f"{process.name} {process.error}")
            if self._processes.left_s < 0:
                raise StopTrial
            time.sleep(POLL_S)

    def _patience_s(self, process: VariantProcess) -> float:
        """A compiler may take half of what is left of the budget, but not less than the program as it is needs."""
        return max(
            PATIENCE * self._starts_s[BASELINE], (time.monotonic() - process.started + self._processes.left_s) / 2
        )

    def _window(self, process: VariantProcess) -> None:
        steps = self._program.steps
        if self._processes.left_s < 0:
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
            time.sleep(WINDOW_POLL_S)
        process.pause()

    def _keep(self, group: Sequence[VariantProcess]) -> None:
        """Keep what the processes measured, and end them."""
        for process in group:
            is_ready = process.is_ready()
            error = process.error or ("" if is_ready else "it was still starting when the trial ended")
            if error and process.name != BASELINE:
                self.errors.setdefault(process.name, error)
            if process.report is not None:
                windows, per_round = tuple(process.windows), self._program.steps.per_round
                self.measured.append(Measured(process.name, self.count, process.report, windows, per_round))
        self._processes.end(group)

    def _report_round(self, number: int, group: Sequence[VariantProcess]) -> None:
        times = ", ".join(
            f"{one.name} {duration(1e9 * one.windows[-1].step_s)}" for one in group if one.windows and not one.error
        )
        if times:
            self._say(f"round {number}: {times}")

    def _first_verdicts_s(self, variants: int) -> float:
        """What so many take, once they are ready, in enough rounds for a first verdict."""
        steps = self._program.steps
        round_s = 1.1 * steps.step_s * (steps.settle + steps.per_window) * steps.per_round
        return LOOK_EVERY * (variants + baselines_for(variants)) * round_s

    def enough_s(self, variants: int) -> float:
        """A budget in which this machine starts so many, measures them, and measures again what looks faster."""
        starting_s = (variants + baselines_for(variants)) * self._start_each_s
        return self._program.took_s + 2 * (starting_s + self._first_verdicts_s(variants))

    def in_time(self, variants: Sequence[Variant]) -> int:
        """How many of these, from the first on, can start and be measured in enough rounds for a first verdict."""
        starts_s = accumulate(map(self._start_s, variants), max, initial=self._starts_s[BASELINE])
        left_s = self._processes.left_s
        return max(
            (some for some, start_s in enumerate(starts_s) if start_s + self._first_verdicts_s(some) <= left_s),
            default=0,
        )

    def _start_s(self, variant: Variant) -> float:
        """What it took to start; a combination takes as long as each of its parts, or longer."""
        return max(self._starts_s.get(name, 0.0) for name in variant.name.split("+"))


def started_within(time_s: float, start_s: float, ranks: int) -> int:
    """As many processes as a part of the time starts, because those that start at once share the cores, with their
    ranks; but enough for one variant."""
    return max(MIN_BASELINES + 1, int(starting_at_once(ranks) * START_SHARE * time_s / start_s))


def starting_at_once(ranks: int) -> float:
    """How many processes start in the time of one, where each keeps a core busy with each of its ranks."""
    return max(1.0, usable_cores() / ranks)


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
