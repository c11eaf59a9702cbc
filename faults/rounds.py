"""Measures the variants of a case in rounds, so that the stopwatch and the profiler see the same machine.

A shared host can be half as fast from one second to the next, a GPU at its power limit changes its clocks by 15 %, and
a profiler stays attached to its process. So each variant has one process for the stopwatch and one for each capture (a
new one each time, where it is about a process's first calls), all on the same few calm cores. All are built and warmed
up first; then they work one at a time, each when the host is calm (`faults/calm_host.py`), in rounds: the stopwatch, a
capture, the stopwatch again, the other capture, the stopwatch again. A round in which all these times are as short as
any ever seen was undisturbed from its begin to its end. What is kept is the captures and the times of one round: the
least disturbed.
"""

from __future__ import annotations

import functools
import importlib
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from faults.actor import Actor, Worker
from faults.calm_host import Pulse, keep_to_calm_cores
from faults.captures import Captures
from faults.jobs import CAPTURE, DESCRIBE, FAULTY, TIME, Job, Result
from faults.programs import Case
from faults.stopwatch import FirstSteps, Stopwatch, summary, wake

AGREE = 0.03
"""Two measurements that differ by no more are the same."""
CAPTURES_AGREE = 0.10
"""The same for two captures, whose steps the profiler makes longer now more, now less."""
FEWEST_ROUNDS, MOST_ROUNDS = 3, 10
CASE_LIMIT_S = 12.0
"""After so long a case begins no further round."""
WAIT_S = 0.5
"""How long a measurement waits for a calm moment."""
MEASURE, HOLD, KEEP = "measure", "hold", "keep"


@dataclass(slots=True)
class Round:
    """What was measured of one variant in a row: its times, and a step of each capture with how busy the GPU was."""

    times: list[float] = field(default_factory=list)
    busy: list[float] = field(default_factory=list)
    captured: dict[Job, float] = field(default_factory=dict)

    def disturbance(self, least: Round) -> float:
        """How much longer its slowest part took than it was ever seen to take; under 1 it counts as undisturbed.

        A GPU that was busy for longer than a bare step ran with slower clocks then.
        """
        if not self.times:
            return float("inf")
        bare = max([*self.times, *self.busy]) / least.times[0] - 1
        captures = [ns / least.captured[job] - 1 for job, ns in self.captured.items()]
        return max([bare / AGREE, *(longer / CAPTURES_AGREE for longer in captures)])


def least_of(rounds: Sequence[Round]) -> Round:
    """The shortest time and the shortest capture of each kind that were ever seen."""
    captured: dict[Job, float] = {}
    for past in rounds:
        for job, ns in past.captured.items():
            captured[job] = min(ns, captured.get(job, ns))
    return Round([min((ns for past in rounds for ns in past.times), default=0.0)], captured=captured)


class Variant:
    """One variant of a case: its stopwatch, its captures, and the rounds that it has gone through."""

    def __init__(self, jobs: Sequence[Job], folder: Path, pulse: Pulse) -> None:
        self.folder = folder
        self.pulse = pulse
        self.rounds: list[Round] = []
        self.held = Round()
        self.kept: dict[Job, Result] = {}
        self._jobs = jobs
        self._actors = {job: actor_of(job, folder) for job in jobs if not job.needs_own_process}

    def wait_until_built(self) -> None:
        """Waits for the processes that live as long as the case."""
        for actor in self._actors.values():
            actor.answer()

    def go_round(self) -> None:
        """The stopwatch before, between and after the captures; they are held if no round was calmer."""
        this, asked = Round(), list[Actor]()
        stopwatch, *captures = self._jobs
        self._once(stopwatch, this, asked)
        for capture in captures:
            self._once(capture, this, asked)
            self._once(stopwatch, this, asked)
        self.rounds.append(this)
        least = least_of(self.rounds)
        if this.disturbance(least) <= self.held.disturbance(least):
            self.held = this
            for actor in asked:
                actor.ask(HOLD)
                if actor.job not in self._actors:
                    self.kept[actor.job] = actor.ask(KEEP)
        for actor in asked:
            if actor.job not in self._actors:
                actor.end()

    def settled(self) -> bool:
        """Whether some rounds were gone and one was undisturbed, or nothing can be measured."""
        return len(self.rounds) >= FEWEST_ROUNDS and (self.calm() > 0 or not self._times())

    def calm(self) -> int:
        """How many rounds were undisturbed."""
        least = least_of(self.rounds)
        return sum(past.disturbance(least) <= 1 for past in self.rounds)

    def results(self) -> dict[Job, Result]:
        """What is kept of each job; without those that failed."""
        self.kept |= {job: actor.ask(KEEP) for job, actor in self._actors.items() if not actor.failed}
        if not self._times():
            return {}
        step_ns = round(statistics.median(self.held.times))
        times = {**asdict(summary(self._times())), "step_ns": step_ns, "calm": self.calm()}
        return {
            job: {**result, **({"captures": len(self.rounds)} if job.work == CAPTURE else times)}
            for job, result in self.kept.items()
            if "error" not in result
        }

    def end(self) -> None:
        """Ends the processes."""
        for actor in self._actors.values():
            actor.end()

    def _times(self) -> list[float]:
        return [ns for past in self.rounds for ns in past.times]

    def _once(self, job: Job, this: Round, asked: list[Actor]) -> None:
        actor = self._actors.get(job) or actor_of(job, self.folder)
        if job not in self._actors:
            actor.answer()
        if actor.failed:
            return
        self.pulse.wait_for_calm(WAIT_S)
        result = actor.ask(MEASURE)
        if job.work == TIME:
            this.times.extend([result["ns"]] if "ns" in result else [])
        elif "busy_ns" in result:
            this.busy.append(result["busy_ns"])
            this.captured[job] = result["step_ns"]
        if actor not in asked:
            asked.append(actor)


def measure(wanted: Sequence[Job], folder: Path, pulse: Pulse) -> dict[Job, Result]:
    """Measures everything of a case; what failed is left out."""
    began = time.monotonic()
    keep_to_calm_cores(pulse.cores)
    by_variant: dict[str, list[Job]] = {}
    for job in sorted(wanted, key=lambda job: job.work != TIME):
        by_variant.setdefault(job.timed_as, []).append(job)
    variants = [Variant(jobs, folder, pulse) for jobs in by_variant.values()]
    try:
        for variant in variants:
            variant.wait_until_built()
        for position in range(MOST_ROUNDS):
            restless = [variant for variant in variants if not variant.settled()]
            if not restless or (position >= FEWEST_ROUNDS and time.monotonic() - began > CASE_LIMIT_S):
                break
            for variant in restless:
                variant.go_round()
        return {job: result for variant in variants for job, result in variant.results().items()}
    finally:
        for variant in variants:
            variant.end()


def describe(case: Case, folder: Path) -> Result:
    """The device and the software, as a process of its own sees them."""
    actor = actor_of(Job(case, DESCRIBE, FAULTY), folder)
    try:
        return actor.answer() or actor.ask(KEEP)
    finally:
        actor.end()


def actor_of(job: Job, folder: Path) -> Actor:
    """A process that holds one variant of a case."""
    return Actor(job, functools.partial(_worker, job, folder))


def _worker(job: Job, folder: Path) -> Worker:
    torch = importlib.import_module("torch")
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    if not job.needs_own_process:
        wake(torch)
    return WORKS[job.work](torch, job, folder)


def _timing(torch: Any, job: Job, folder: Path) -> Worker:
    stopwatch = FirstSteps(torch, job) if job.case.cold else Stopwatch(torch, job.build())
    return lambda asked: {"ns": stopwatch.sample()} if asked == MEASURE else {"steps": stopwatch.steps}


def _capturing(torch: Any, job: Job, folder: Path) -> Worker:
    captures = Captures(torch, job)
    actions: dict[str, Callable[[], Result]] = {
        MEASURE: captures.take,
        HOLD: captures.hold,
        KEEP: lambda: captures.write(folder),
    }
    return lambda asked: actions[asked]()


def _describing(torch: Any, job: Job, folder: Path) -> Worker:
    about = {"device": torch.cuda.get_device_name(), "torch": str(torch.__version__), "cuda": str(torch.version.cuda)}
    return lambda asked: about


WORKS: dict[str, Callable[[Any, Job, Path], Worker]] = {TIME: _timing, CAPTURE: _capturing, DESCRIBE: _describing}
