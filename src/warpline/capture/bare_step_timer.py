"""Time the steps of a running program without making it wait."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import Any

from warpline.capture.loader_clock import LoaderClock
from warpline.capture.run_folder import MAX_STORED_LAPS, MIN_TIMED_STEPS

COLD_STEPS = 2
"""The first steps load, tune and allocate: these and a third of all steps are left out if enough others follow."""
MAX_BARE_TO_RECORDED = 1.03
MIN_STEADY_RATIO = 0.95
"""If later steps take less than this share of earlier ones, the program is not warm yet."""


MAX_EVEN = 2.0
"""Steps of which one takes this many times as long as most are uneven."""


@dataclass(frozen=True)
class StepTime:
    """The wall time of a step, over several steps."""

    median_ns: int
    min_ns: int
    max_ns: int
    steps: int
    how: str
    """`cuda events` or `clock`."""
    settled: bool
    """Whether the later half of the steps is about as slow as the earlier half."""
    laps_ns: tuple[int, ...] = ()
    """The times of the latest steps, in order: how much the steps of this run differ."""
    cpu_ns: int | None = None
    """Median time of a step by the CPU's clock: shorter than `median_ns` where the CPU runs ahead of the GPU."""


@dataclass(frozen=True)
class _Mark:
    clock_ns: int
    event: Any


class StepTimer:
    """A clock read at the end of each step; on CUDA, an event in the stream.

    The CPU runs ahead of the GPU, so the CPU's clock shows when a step was submitted. An event shows when it was done.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._ends: list[_Mark] = []
        self._begins: list[_Mark] = []
        self.loaders = LoaderClock()

    def lap(self) -> None:
        """Record the end of a step and the start of the next."""
        self.loaders.lap()
        mark = self._mark()
        self._ends.append(mark)
        self._begins.append(mark)

    def resume(self) -> None:
        """Restart the clock: the time since the last step belongs to no step."""
        if self._begins:
            self._begins[-1] = self._mark()

    def _mark(self) -> _Mark:
        cuda = self._torch.cuda
        event = None
        if cuda.is_initialized():
            event = cuda.Event(enable_timing=True)
            event.record()
        return _Mark(time.perf_counter_ns(), event)

    def __len__(self) -> int:
        return len(self._ends)

    def elapsed_s(self) -> float:
        """Seconds from the first lap to the last."""
        return (self._ends[-1].clock_ns - self._ends[0].clock_ns) / 1e9 if self._ends else 0.0

    def longest_s(self) -> float:
        """The longest step by the CPU's clock."""
        return max(self._clock_laps_ns(), default=0) / 1e9

    def are_uneven(self) -> bool:
        """Whether the CPU's clock shows one that takes twice as long as most: loaders' workers, or a pause."""
        laps = self._clock_laps_ns()[COLD_STEPS:]
        return bool(laps) and max(laps) > MAX_EVEN * statistics.median(laps)

    def _clock_laps_ns(self) -> list[int]:
        ends = self._ends
        return [ends[at].clock_ns - ends[at - 1].clock_ns for at in range(1, len(ends))]

    def restart(self) -> None:
        """Discard all laps."""
        self._ends.clear()
        self._begins.clear()
        self.loaders.restart()

    def summary(self, cold: int = COLD_STEPS) -> StepTime | None:
        """Summarise the laps; None with fewer than two. Waits for the last one."""
        by_events = bool(self._ends) and all(mark.event is not None for mark in self._ends)
        if by_events:
            self._ends[-1].event.synchronize()
        pairs = list(zip(self._begins, self._ends[1:], strict=False))
        if not pairs:
            return None
        cold = max(cold, len(pairs) // 3) if cold else 0
        pairs = pairs[min(cold, max(len(pairs) - MIN_TIMED_STEPS, 0)) :]
        kept = [_between(*pair, by_events) for pair in pairs]
        return StepTime(
            round(statistics.median(kept)),
            min(kept),
            max(kept),
            len(kept),
            "cuda events" if by_events else "clock",
            _is_steady(kept),
            tuple(kept[-MAX_STORED_LAPS:]),
            round(statistics.median(_between(*pair, by_events=False) for pair in pairs)),
        )


def reliable_bare_step(bare: StepTime | None, recorded: StepTime | None) -> tuple[StepTime | None, str]:
    """The bare steps if they are reliable, and a note if they are not.

    Recording makes no step faster: bare steps that are slower and still get faster were not warm.
    """
    if not bare or not recorded or bare.median_ns <= MAX_BARE_TO_RECORDED * recorded.median_ns:
        return bare, ""
    times = f"bare steps took {bare.median_ns:,} ns, recorded ones {recorded.median_ns:,} ns"
    if bare.settled:
        return bare, f"{times}: the recording or the environment changed the program"
    return None, f"{times}: the bare steps were not warm yet; use a larger --skip"


def _is_steady(times: list[int]) -> bool:
    half = len(times) // 2
    return not half or statistics.median(times[half:]) >= MIN_STEADY_RATIO * statistics.median(times[:half])


def _between(begin: _Mark, end: _Mark, by_events: bool) -> int:
    return round(begin.event.elapsed_time(end.event) * 1e6) if by_events else end.clock_ns - begin.clock_ns
