"""Measures the variants of a case by turns, so that the stopwatch and the profiler see the same machine.

A shared host can be half as fast from one second to the next, and a profiler stays attached to its process. So each
variant has one process for the stopwatch and one for the captures (one for each measurement, where it is about a
process's first calls). All are built and warmed up first; then they work one at a time, round after round, each when
the host is calm (`lab/pulse.py`), until every one has seen its fastest time twice and none contradicts another, or
the rounds are used up. What is kept is the fastest of each: the machine undisturbed, the one state that comes back.

They contradict each other if one has seen slower clocks only: a GPU is not busier in a recorded step than a bare step
is long, and a bare step is no longer than a recorded one. Products that draw all of an H200's power run at two
speeds, 15 % apart, and may see the slow one several times in a row.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from warpline.lab.faults import Case
from warpline.lab.job import CAPTURE, DESCRIBE, FAULTY, JOB_LIMIT_S, TIME, Job, Result, failure, limited
from warpline.lab.pulse import calm, pulse_ns, wait_for_calm
from warpline.lab.snapshot import Snapshots
from warpline.lab.stopwatch import FirstSteps, Stopwatch, summary, wake

AGREE = 0.02
"""Two measurements that differ by no more are the same."""
MOST_ROUNDS = 12
CASE_LIMIT_S = 12.0
"""After so long a case begins no further round."""
WAIT_S = 1.0
"""How long a measurement waits for a calm moment."""
MEASURE, KEEP = "measure", "keep"
Turn = Callable[[str], Result]


class Actor:
    """A process that holds one variant of a case, and does its work whenever it is asked."""

    def __init__(self, job: Job, folder: Path) -> None:
        self.job = job
        self.failed = False
        context = multiprocessing.get_context("fork")
        self._pipe, there = context.Pipe()
        self._process = context.Process(target=_live, args=(job, folder, there))
        self._process.start()
        there.close()

    def ask(self, what: str, least_pulse: int = 0) -> Result:
        """What the process answers; an answer with an `error` is its last."""
        with contextlib.suppress(OSError):
            self._pipe.send((what, least_pulse))
        return self.answer()

    def answer(self) -> Result:
        """Waits for what the process has to say."""
        result: Result = {"error": "the process is gone"}
        if not self.failed:
            with contextlib.suppress(EOFError, OSError):
                if self._pipe.poll(JOB_LIMIT_S + 10):
                    result = self._pipe.recv()
            if "error" in result:
                print(f"{self.job}: {result['error']}", file=sys.stderr, flush=True)
                self.failed = True
        return result

    def end(self) -> None:
        """Ends the process, whatever it is doing."""
        with contextlib.suppress(OSError):
            self._pipe.send(None)
        self._process.join(2)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


@dataclass(slots=True)
class Seen:
    """What was measured of one job."""

    times: list[float] = field(default_factory=list)
    pulses: list[int] = field(default_factory=list)
    busy: list[float] = field(default_factory=list)
    """How long the GPU was busy in a step, where it was captured."""
    kept: Result | None = None

    def calm(self, least: int) -> int:
        """How many of the measurements were made in calm moments and agree with the fastest."""
        fastest = min(self.times, default=0.0) * (1 + AGREE)
        return sum(calm(pulse, least) and ns <= fastest for ns, pulse in zip(self.times, self.pulses, strict=True))

    def settled(self, least: int) -> bool:
        """Whether the fastest time was seen twice."""
        return self.calm(least) > 1

    def contradicts(self, others: Sequence[Seen]) -> bool:
        """Whether this is slower than the other kind of measurement (bare or captured) of the same step allows."""
        if not self.times:
            return False
        if self.busy:
            return any(other.times and min(self.busy) > min(other.times) * (1 + AGREE) for other in others)
        return any(other.times and min(self.times) > min(other.times) * (1 + AGREE) for other in others)


class Turns:
    """Measures case after case on one host, and remembers how fast that host can be."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.least_pulse = wait_for_calm(0, WAIT_S)

    def measure(self, wanted: Sequence[Job]) -> dict[Job, Result]:
        """Measures everything of a case, and keeps the fastest of each; what failed is left out."""
        began = time.monotonic()
        seen = {job: Seen() for job in wanted}
        actors = {job: Actor(job, self.folder) for job in wanted if not job.needs_own_process}
        try:
            for actor in actors.values():
                actor.answer()
            for position in range(MOST_ROUNDS):
                restless = [job for job in wanted if self._is_restless(job, seen)]
                if not restless or (position and time.monotonic() - began > CASE_LIMIT_S):
                    break
                for job in restless:
                    self._once(job, seen[job], actors.get(job))
            for job, actor in actors.items():
                seen[job].kept = actor.ask(KEEP)
        finally:
            for actor in actors.values():
                actor.end()
        return {job: self._summary(job, of) for job, of in seen.items() if of.kept and "error" not in of.kept}

    def _is_restless(self, job: Job, seen: dict[Job, Seen]) -> bool:
        counterparts = [of for other, of in seen.items() if other.timed_as == job.timed_as and other.work != job.work]
        return not seen[job].settled(self.least_pulse) or seen[job].contradicts(counterparts)

    def _once(self, job: Job, seen: Seen, actor: Actor | None) -> None:
        """One measurement; without an actor in a process of its own, which keeps the fastest before it ends."""
        own = actor or Actor(job, self.folder)
        if actor is None:
            own.answer()
        result = own.ask(MEASURE, self.least_pulse)
        if "ns" in result:
            seen.times.append(result["ns"])
            seen.pulses.append(max(result["pulses"]))
            seen.busy.extend([result["busy_ns"]] if "busy_ns" in result else [])
            self.least_pulse = min(self.least_pulse, *result["pulses"])
        if actor is None:
            if "ns" in result and result["ns"] == min(seen.times):
                seen.kept = own.ask(KEEP)
            own.end()

    def _summary(self, job: Job, seen: Seen) -> Result:
        assert seen.kept is not None
        measured = {"captures": len(seen.times)} if job.work == CAPTURE else asdict(summary(seen.times))
        return {**seen.kept, **measured, "calm": seen.calm(self.least_pulse)}


def describe(case: Case, folder: Path) -> Result:
    """The device and the software, as a process of its own sees them."""
    actor = Actor(Job(case, DESCRIBE, FAULTY), folder)
    try:
        return actor.answer() or actor.ask(KEEP)
    finally:
        actor.end()


def _live(job: Job, folder: Path, pipe: Any) -> None:
    """A process's life: it builds its step, says that it is ready, and works when asked until it is told to end."""
    try:
        with limited():
            torch = importlib.import_module("torch")
            if not job.needs_own_process:
                wake(torch)
            turn = WORKS[job.work](torch, job, folder)
        pipe.send({})
        while (asked := pipe.recv()) is not None:
            what, least_pulse = asked
            with limited():
                before = wait_for_calm(least_pulse, WAIT_S) if what == MEASURE else 0
                result = turn(what)
            pipe.send(result if what == KEEP else {**result, "pulses": (before, pulse_ns())})
    except Exception as error:
        traceback.print_exc()
        pipe.send(failure(error))
    finally:
        os._exit(0)


def _timing(torch: Any, job: Job, folder: Path) -> Turn:
    stopwatch = FirstSteps(torch, job) if job.case.cold else Stopwatch(torch, job.build())
    return lambda asked: {"ns": stopwatch.sample()} if asked == MEASURE else {"steps": stopwatch.steps}


def _capturing(torch: Any, job: Job, folder: Path) -> Turn:
    snapshots = Snapshots(torch, job)
    return lambda asked: snapshots.take() if asked == MEASURE else snapshots.write(folder)


def _describing(torch: Any, job: Job, folder: Path) -> Turn:
    about = {"device": torch.cuda.get_device_name(), "torch": str(torch.__version__), "cuda": str(torch.version.cuda)}
    return lambda asked: about


WORKS: dict[str, Callable[[Any, Job, Path], Turn]] = {TIME: _timing, CAPTURE: _capturing, DESCRIBE: _describing}
