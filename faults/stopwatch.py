"""Times steps with nothing but a clock: no profiler, and one wait for the GPU at the end."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from faults.jobs import Job

REPEATS = 2
REPEAT_NS = 20_000_000
"""How long one repeat should take: long enough that the wait at its end is nothing."""
WARM_UP_NS = 60_000_000
FEWEST_STEPS, MOST_STEPS = 5, 300
WAKE_NS = 100_000_000
"""How long the GPU is kept busy before a process measures, so that its clocks have risen."""


@dataclass(frozen=True, slots=True)
class StepTime:
    """Wall times of a step, over some repeats of many steps each."""

    median_ns: int
    min_ns: int
    max_ns: int
    repeats: int


class Stopwatch:
    """Times a step in its steady state."""

    def __init__(self, torch: Any, step: Callable[[], object]) -> None:
        warm_up(torch, step)
        self._torch, self._step = torch, step
        expected_ns = per_step_ns(torch, step, FEWEST_STEPS)
        self.steps = min(max(round(REPEAT_NS / expected_ns), FEWEST_STEPS), MOST_STEPS)

    def sample(self) -> float:
        """The time of a step now: the faster of two repeats, after the same warm-up as a capture's."""
        warm_up(self._torch, self._step)
        return min(per_step_ns(self._torch, self._step, self.steps) for _ in range(REPEATS))


class FirstSteps:
    """Times the first steps after building, with whatever they load, compile or tune."""

    def __init__(self, torch: Any, job: Job) -> None:
        self._torch, self._job, self.steps = torch, job, job.case.steps
        pay_for_the_process(torch, job)

    def sample(self) -> float:
        """The time of one of the first steps, of a step built anew."""
        return per_step_ns(self._torch, self._job.build(), self.steps)


def pay_for_the_process(torch: Any, job: Job) -> None:
    """Runs the first steps once, for what only a process's very first calls cost; not where they are the case."""
    if not job.needs_own_process:
        per_step_ns(torch, job.build(), job.case.steps)


def wake(torch: Any) -> None:
    """Keeps the GPU busy with work that is no part of any measurement, until its clocks have risen."""
    began, x = time.perf_counter_ns(), torch.zeros(16 << 20, device="cuda")
    while time.perf_counter_ns() - began < WAKE_NS:
        for _ in range(50):
            x.add_(1.0)
        torch.cuda.synchronize()
    del x
    torch.cuda.empty_cache()


def warm_up(torch: Any, step: Callable[[], object]) -> None:
    """Runs the step until it has settled."""
    began = time.perf_counter_ns()
    for count in range(MOST_STEPS):
        step()
        torch.cuda.synchronize()
        if count >= FEWEST_STEPS and time.perf_counter_ns() - began > WARM_UP_NS:
            break


def per_step_ns(torch: Any, step: Callable[[], object], steps: int) -> float:
    """Wall time of a step over many, with one wait for the GPU at the end."""
    torch.cuda.synchronize()
    began = time.perf_counter_ns()
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter_ns() - began) / steps


def summary(samples: Sequence[float]) -> StepTime:
    """How far the samples of one step lie apart."""
    return StepTime(round(statistics.median(samples)), round(min(samples)), round(max(samples)), repeats=len(samples))
