"""Finds calm cores of a shared host and waits for calm moments: it knows them by how long a piece of Python takes."""

from __future__ import annotations

import os
import time

LOOPS = 3_000
"""Of a loop that takes about a tenth of a millisecond."""
TRIES = 3
NEAR = 1.35
"""How far above the least a pulse may be in a calm moment: a calm H200 host showed 1.0 to 1.3, a disturbed one 1.8 to
2.4."""
PAUSE_S = 0.02
CORES = 6
"""How many cores a case keeps to. On an H200 host of 16 cores, about five were calm at a time and some never were: a
stopwatch on a calm core and a profiler on another saw machines that differ by a factor of two."""
LOOKS, BETWEEN_LOOKS_S = 5, 0.02


class Pulse:
    """The pulse of this host, and the least it ever was."""

    def __init__(self) -> None:
        self.cores = frozenset(os.sched_getaffinity(0))
        """Those that this process may use."""
        self.least_ns = self.take()

    def take(self) -> int:
        """How long the loop takes now."""
        return min(_beat_ns() for _ in range(TRIES))

    def wait_for_calm(self, limit_s: float) -> bool:
        """Waits until the host is about as fast as it was ever seen to be, but not for ever."""
        until = time.monotonic() + limit_s
        while True:
            pulse = self.take()
            self.least_ns = min(self.least_ns, pulse)
            if pulse <= NEAR * self.least_ns:
                return True
            if time.monotonic() >= until:
                return False
            time.sleep(PAUSE_S)


def _beat_ns() -> int:
    began, total = time.perf_counter_ns(), 0
    for number in range(LOOPS):
        total += number
    return time.perf_counter_ns() - began


def keep_to_calm_cores(allowed: frozenset[int]) -> frozenset[int]:
    """Keeps this process, and those it starts from now on, to the calmest of these cores, and returns them."""
    pulses = dict.fromkeys(allowed, 0)
    for _ in range(LOOKS):
        for core in sorted(allowed):
            os.sched_setaffinity(0, {core})
            pulses[core] += min(_beat_ns() for _ in range(TRIES))
        time.sleep(BETWEEN_LOOKS_S)
    calmest = frozenset(sorted(allowed, key=pulses.__getitem__)[:CORES])
    os.sched_setaffinity(0, calmest)
    return calmest
