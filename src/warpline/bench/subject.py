"""What to measure and how: a function with its work, and the settings of a measurement."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass, field

from warpline.bench.calls import AlternatingCalls
from warpline.bench.result import BenchNote, Clock, Host
from warpline.bench.stopwatch import Call, Now
from warpline.bench.work import CallWork
from warpline.errors import UsageError


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a measurement."""

    flush: bool = True
    graph: bool = False
    seconds: float = 0.5
    warm_up_seconds: float = 3.0
    now: Now = time.perf_counter_ns


@dataclass(slots=True)
class Subject:
    """One function being measured."""

    name: str
    calls: AlternatingCalls
    work: CallWork | None
    call: Call = field(init=False)
    """What one sample runs."""
    per_sample: int = 1
    clock: Clock = "events"
    host: Host | None = None
    notes: list[BenchNote] = field(default_factory=list)
    first_call_ns: float = 0.0

    def __post_init__(self) -> None:
        self.call = self.calls


def first_call(subject: Subject, now: Now, synchronise: Callable[[], None]) -> None:
    """Run the function once, including loading, compiling and allocating."""
    synchronise()
    began = now()
    result = subject.calls()
    synchronise()
    subject.first_call_ns = now() - began
    if isinstance(result, (Generator, Coroutine)):
        result.close()
        what = f"calling {subject.name} only creates a {type(result).__name__}, which has not run yet"
        raise UsageError("nothing-runs", what, "time a function that consumes it")
