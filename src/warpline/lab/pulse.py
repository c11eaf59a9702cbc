"""Tells calm moments of a shared host from disturbed ones, by how long a fixed piece of Python takes."""

from __future__ import annotations

import time

LOOPS = 3_000
"""Of a loop that takes about a tenth of a millisecond."""
TRIES = 3
NEAR = 1.35
"""How far above the least a pulse may be in a calm moment: a calm H200 host showed 1.0 to 1.3, a disturbed one 1.8 to
2.4."""
PAUSE_S = 0.02


def pulse_ns() -> int:
    """How long the loop takes now."""
    return min(_beat_ns() for _ in range(TRIES))


def calm(pulse: int, least: int) -> bool:
    """Whether the host is as fast as it was ever seen to be."""
    return pulse <= NEAR * least


def wait_for_calm(least: int, limit_s: float) -> int:
    """Waits for a calm moment, but not for ever; returns the last pulse."""
    until = time.monotonic() + limit_s
    while not calm(pulse := pulse_ns(), least) and time.monotonic() < until:
        time.sleep(PAUSE_S)
    return pulse


def _beat_ns() -> int:
    began, total = time.perf_counter_ns(), 0
    for number in range(LOOPS):
        total += number
    return time.perf_counter_ns() - began
