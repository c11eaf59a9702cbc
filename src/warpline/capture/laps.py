"""Step times taken while a program runs, without making it wait."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import Any

COLD = 2
"""First steps, which load, tune and allocate: left out where enough others follow."""
FEWEST = 3


@dataclass(frozen=True)
class StepTime:
    """Wall time of a step, over some steps."""

    median_ns: int
    min_ns: int
    max_ns: int
    steps: int
    how: str
    """`cuda events` or `clock`."""


class Laps:
    """A clock read at the end of each step; on CUDA an event in the stream, which waits for the work before it.

    The CPU runs ahead of the GPU, so that its own clock shows when a step was submitted. Events show when it was done.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._clock_ns: list[int] = []
        self._events: list[Any] = []

    def lap(self) -> None:
        """A step has ended."""
        cuda = self._torch.cuda
        if cuda.is_initialized():
            event = cuda.Event(enable_timing=True)
            event.record()
            self._events.append(event)
        self._clock_ns.append(time.perf_counter_ns())

    def __len__(self) -> int:
        return len(self._clock_ns)

    def restart(self) -> None:
        """Forget what was timed."""
        self._clock_ns.clear()
        self._events.clear()

    def summary(self, cold: int = COLD) -> StepTime | None:
        """What the laps say of a step; None with fewer than two of them. Waits for the last one."""
        by_events = bool(self._events) and len(self._events) == len(self._clock_ns)
        times = self._between_events() if by_events else self._between_readings()
        if not times:
            return None
        kept = times[min(cold, max(len(times) - FEWEST, 0)) :]
        how = "cuda events" if by_events else "clock"
        return StepTime(round(statistics.median(kept)), min(kept), max(kept), len(kept), how)

    def _between_events(self) -> list[int]:
        self._events[-1].synchronize()
        events = self._events
        return [round(events[at - 1].elapsed_time(events[at]) * 1e6) for at in range(1, len(events))]

    def _between_readings(self) -> list[int]:
        clock = self._clock_ns
        return [clock[at] - clock[at - 1] for at in range(1, len(clock))]
