"""Warm-up: run until the times stop changing, and say how this was detected."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

WINDOWS = 3
"""Consecutive windows that must agree."""
TOLERANCE = 0.01
"""Medians within a percent agree; those of a noisy function may differ by half of its interquartile range."""


@dataclass(frozen=True, slots=True)
class WarmUp:
    """The result of the warm-up."""

    calls: int
    seconds: float
    settled: bool
    reason: str
    first_call_ns: float
    """Wall time of the very first call, including loading, compiling and allocating."""


@dataclass(slots=True)
class Settling:
    """Watches the medians of successive windows of timings."""

    medians: list[float] = field(default_factory=list)
    noises: list[float] = field(default_factory=list)

    def add(self, window: Sequence[float]) -> None:
        """Add a window."""
        middle = statistics.median(window)
        self.medians.append(middle)
        quartiles = statistics.quantiles(window, n=4, method="inclusive") if len(window) > 1 else [middle] * 3
        self.noises.append((quartiles[2] - quartiles[0]) / 2 / middle if middle else 0.0)

    @property
    def tolerance(self) -> float:
        """The allowed difference between the last windows: their own noise, not a trend between them."""
        return max(TOLERANCE, statistics.median(self.noises[-WINDOWS:]))

    @property
    def distance(self) -> float:
        """The difference between the last windows, relative to the fastest of them."""
        last = self.medians[-WINDOWS:]
        return (max(last) - min(last)) / min(last) if min(last) > 0 else 0.0

    @property
    def settled(self) -> bool:
        """Whether the last windows agree."""
        return len(self.medians) >= WINDOWS and self.distance <= self.tolerance


def settle(
    time_window: Callable[[], Sequence[float]],
    now: Callable[[], int],
    *,
    most_seconds: float,
    least_seconds: float = 0.0,
    first_call_ns: float = 0.0,
    calls_before: int = 0,
) -> WarmUp:
    """Time windows until they agree, or until the time limit."""
    watch, began, calls = Settling(), now(), calls_before
    while True:
        window = time_window()
        watch.add(window)
        calls += len(window)
        seconds = (now() - began) / 1e9
        if watch.settled and seconds >= least_seconds:
            reason = f"{WINDOWS} windows of {len(window)} within {100 * max(watch.distance, 0.0005):.1f} %"
            return WarmUp(calls, seconds, True, reason, first_call_ns)
        if seconds >= most_seconds and len(watch.medians) >= WINDOWS:
            reason = f"after {seconds:.2g} s the last {WINDOWS} windows still differ by {100 * watch.distance:.1f} %"
            return WarmUp(calls, seconds, False, reason, first_call_ns)
