"""Measures the variants of a case by turns, so that the stopwatch and the profiler see the same machine.

A shared host can be half as fast from one second to the next, and a profiler stays attached to its process. So each
variant has one process for the stopwatch and one for the captures. All are built and warmed up first; then they work
one at a time, round after round, until nothing changes any more or the rounds are used up. What is kept is the fastest
of each: the machine undisturbed, which is the one state that comes back.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from warpline.lab.job import CAPTURE, JOB_LIMIT_S, TIME, Job, Result, failure, limited
from warpline.lab.snapshot import Snapshots
from warpline.lab.stopwatch import Stopwatch, summary, wake

FEWEST_ROUNDS, MOST_ROUNDS = 2, 8
CALM = 0.02
"""How far the measurements of one step may differ if there is no need to go on."""
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

    def ask(self, what: str) -> Result:
        """What the process answers; an answer with an `error` is its last."""
        with contextlib.suppress(OSError):
            self._pipe.send(what)
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


def by_turns(wanted: Sequence[Job], folder: Path) -> dict[Job, Result]:
    """Measures everything of a case, and keeps the fastest of each."""
    actors = [Actor(job, folder) for job in wanted]
    seen: dict[Job, list[float]] = {job: [] for job in wanted}
    try:
        for actor in actors:
            actor.answer()
        for position in range(MOST_ROUNDS):
            if position >= FEWEST_ROUNDS and unrest(seen.values()) <= CALM:
                break
            for actor in actors:
                if "ns" in (result := actor.ask(MEASURE)):
                    seen[actor.job].append(result["ns"])
        results = {actor.job: actor.ask(KEEP) for actor in actors}
    finally:
        for actor in actors:
            actor.end()
    return {job: _summary(job, result, seen[job]) for job, result in results.items() if "error" not in result}


def unrest(seen: Iterable[Sequence[float]]) -> float:
    """How far the measurements of one step differ at most."""
    return max(((max(times) - min(times)) / min(times) for times in seen if times), default=0.0)


def _summary(job: Job, kept: Result, times: Sequence[float]) -> Result:
    if job.work == CAPTURE:
        return {**kept, "captures": len(times)}
    return asdict(summary(times, kept["steps"], cold=False))


def _live(job: Job, folder: Path, pipe: Any) -> None:
    """A process's life: it builds its step, says that it is ready, and works when asked until it is told to end."""
    try:
        with limited():
            torch = importlib.import_module("torch")
            wake(torch)
            turn = WORKS[job.work](torch, job, folder)
        pipe.send({})
        while (asked := pipe.recv()) is not None:
            with limited():
                result = turn(asked)
            pipe.send(result)
    except Exception as error:
        traceback.print_exc()
        pipe.send(failure(error))
    finally:
        os._exit(0)


def _timing(torch: Any, job: Job, folder: Path) -> Turn:
    stopwatch = Stopwatch(torch, job.build())
    return lambda asked: {"ns": stopwatch.sample()} if asked == MEASURE else {"steps": stopwatch.steps}


def _capturing(torch: Any, job: Job, folder: Path) -> Turn:
    snapshots = Snapshots(torch, job)
    return lambda asked: {"ns": snapshots.take()} if asked == MEASURE else snapshots.write(folder)


WORKS: dict[str, Callable[[Any, Job, Path], Turn]] = {TIME: _timing, CAPTURE: _capturing}
