"""Measures the variants of a case by turns, so that the stopwatch and the profiler see the same moment of the machine.

A shared host can be half as fast from one second to the next, and a profiler stays attached to its process. So each
variant has one process for the stopwatch and one for the captures. All are built and warmed up first; then they work
one at a time, and a capture stands between two samples of the same step's bare time. Of several rounds the calmest is
kept whole: the one whose samples agree best.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import statistics
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from warpline.lab.job import CAPTURE, JOB_LIMIT_S, TIME, Job, Result, failure, limited
from warpline.lab.snapshot import Snapshots
from warpline.lab.stopwatch import Stopwatch, wake

MOST_ROUNDS = 6
CALM = 0.04
"""How far samples of one step may differ in a round that is good enough to be the last."""
Turn = Callable[[Any], Result]


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

    def ask(self, what: Any) -> Result:
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
    """Measures everything of a case, and returns what the calmest round saw."""
    actors = [Actor(job, folder) for job in wanted]
    try:
        for actor in actors:
            actor.answer()
        rounds: list[dict[Job, list[float]]] = []
        while len(rounds) < MOST_ROUNDS and not (rounds and unrest(rounds[-1]) <= CALM):
            rounds.append(_round([actor for actor in actors if not actor.failed]))
        kept = min(range(len(rounds)), key=lambda position: unrest(rounds[position]))
        captures = {actor.job: actor.ask(kept) for actor in actors if actor.job.work == CAPTURE}
    finally:
        for actor in actors:
            actor.end()
    times = {job: _times(job, rounds, kept) for job in rounds[kept]}
    return times | {job: result for job, result in captures.items() if "error" not in result}


def unrest(samples: dict[Job, list[float]]) -> float:
    """How far the samples of one step differ at most, in a round."""
    return max(((max(times) - min(times)) / min(times) for times in samples.values() if times), default=0.0)


def _round(actors: Sequence[Actor]) -> dict[Job, list[float]]:
    """Every step's bare samples: one before and one after each of its captures, or two where it has none."""
    timers = {actor.job.variant: actor for actor in actors if actor.job.work == TIME}
    samples: dict[Job, list[float]] = {timer.job: [] for timer in timers.values()}

    def sample(variant: str) -> None:
        if variant in timers and "ns" in (result := timers[variant].ask(TIME)):
            samples[timers[variant].job].append(result["ns"])

    captured = [actor for actor in actors if actor.job.work == CAPTURE]
    for actor in captured:
        sample(actor.job.timed_as)
        actor.ask(CAPTURE)
        sample(actor.job.timed_as)
    for variant in timers.keys() - {actor.job.timed_as for actor in captured}:
        sample(variant)
        sample(variant)
    return {job: times for job, times in samples.items() if times}


def _times(job: Job, rounds: Sequence[dict[Job, list[float]]], kept: int) -> Result:
    """A step's time in the round that is kept, and the extremes of all rounds."""
    every = [sample for samples in rounds for sample in samples.get(job, ())]
    return {
        "median_ns": round(statistics.median(rounds[kept][job])),
        "min_ns": round(min(every)),
        "max_ns": round(max(every)),
        "repeats": len(every),
        "unrest": round(unrest({job: rounds[kept][job]}), 4),
    }


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
    return lambda asked: {"ns": stopwatch.sample()}


def _capturing(torch: Any, job: Job, folder: Path) -> Turn:
    """Captures when asked to, and writes the capture of a round when asked for its number."""
    snapshots = Snapshots(torch, job)

    def turn(asked: Any) -> Result:
        if asked == CAPTURE:
            snapshots.take()
            return {}
        return snapshots.write(asked, folder)

    return turn


WORKS: dict[str, Callable[[Any, Job, Path], Turn]] = {TIME: _timing, CAPTURE: _capturing}
