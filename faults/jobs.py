"""What there is to measure of a case: each variant of it with the stopwatch, and some with the profiler."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from faults.programs import Case

FAULTY, FIXED, PLAIN = "faulty", "fixed", "plain"
TIME, CAPTURE, DESCRIBE = "time", "capture", "describe"
JOB_LIMIT_S = 60
Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Job:
    """One thing to measure of a case."""

    case: Case
    work: str
    """`time`, `capture` or `describe`."""
    variant: str
    """What to build of the case: `faulty`, `plain` (faulty, captured without stacks), `fixed`, or another fix."""

    def __str__(self) -> str:
        return f"{self.case.name} {self.work} {self.variant}"

    @property
    def needs_own_process(self) -> bool:
        """Whether it is about the first calls of a process."""
        return self.case.own_process and self.variant in (FAULTY, PLAIN) and self.work != DESCRIBE

    @property
    def stacks(self) -> bool:
        """Whether its capture records Python frames."""
        return self.variant == FAULTY and self.case.stacks

    @property
    def timed_as(self) -> str:
        """The variant whose bare time a capture of this one is held against."""
        return FAULTY if self.variant == PLAIN else self.variant

    def build(self) -> Callable[[], object]:
        """The step to measure."""
        if self.timed_as == FAULTY:
            return self.case.faulty()
        return self.case.fixed(None if self.variant == FIXED else self.variant)


def jobs(case: Case, *, time_only: bool = False) -> list[Job]:
    """What to measure of a case: the times, then the captures."""
    innocent = (case.innocent,) if case.innocent and case.fix else ()
    timed = (FAULTY, FIXED, *case.also, *innocent)
    captured = () if time_only else (*((PLAIN,) if case.stacks else ()), FAULTY, FIXED)
    return [Job(case, TIME, variant) for variant in timed] + [Job(case, CAPTURE, variant) for variant in captured]


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Stops what takes too long, with a TimeoutError."""

    def stop(number: int, frame: object) -> None:
        raise TimeoutError(f"it took over {JOB_LIMIT_S} s")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(JOB_LIMIT_S)
    try:
        yield
    finally:
        signal.alarm(0)


def failure(error: Exception) -> Result:
    """A result that says why there is none."""
    return {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
