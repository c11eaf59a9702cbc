"""Waits for calm moments of a shared host: it knows them by how long a fixed piece of Python takes."""

from __future__ import annotations

import time

LOOPS = 3_000
"""Of a loop that takes about a tenth of a millisecond."""
TRIES = 3
NEAR = 1.35
"""How far above the least a pulse may be in a calm moment: a calm H200 host showed 1.0 to 1.3, a disturbed one 1.8 to
2.4."""
PAUSE_S = 0.02


class Pulse:
    """The pulse of this host, and the least it ever was."""

    def __init__(self) -> None:
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
