"""Samples of the GPU's and the host's speed, and the measurement that they make."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from warpline.bench.stopwatch import GpuStopwatch, Repeated, WallStopwatch

BYTES_PER_SECOND, FLOPS_PER_SECOND, SECONDS = "bytes/s", "FLOP/s", "s"


@dataclass(frozen=True, slots=True)
class Measurement:
    """A median, the range of its middle half, and how it was taken."""

    value: float
    unit: str
    low: float
    high: float
    repeats: int
    how: str


Benchmark = Callable[[], Measurement]


def summarise(samples: Sequence[float], unit: str, how: str) -> Measurement:
    """The median of some samples with their quartiles."""
    if not samples:
        raise ValueError("no samples")
    quartiles = statistics.quantiles(samples, n=4) if len(samples) > 1 else [samples[0]] * 3
    return Measurement(statistics.median(samples), unit, quartiles[0], quartiles[2], len(samples), how)


def gpu_samples(
    torch: Any, work: Callable[[], object], *, inner: int, repeats: int, warm_up: int = 3, pause_s: float = 0.0
) -> list[float]:
    """Seconds per call of `work`, on the GPU's own clock: each sample times `inner` calls between two events.

    A pause before each sample lets the chip cool, so that its power limit does not lower the clock.
    """
    Repeated(work, warm_up)()
    torch.cuda.synchronize()
    stopwatch, sample = GpuStopwatch(torch, flush=False), Repeated(work, inner)
    if not pause_s:
        return [time_ns / 1e9 / inner for time_ns in stopwatch.time([sample] * repeats)]
    samples = []
    for _ in range(repeats):
        time.sleep(pause_s)
        work()  # wakes the clock up again
        samples.append(stopwatch.time([sample])[0] / 1e9 / inner)
    return samples


def wall_samples(torch: Any, work: Callable[[], object], *, repeats: int, warm_up: int = 3) -> list[float]:
    """Seconds per call on the CPU's clock, each call followed by a synchronisation."""
    times = WallStopwatch(GpuStopwatch(torch, flush=False)).time([work] * (warm_up + repeats))
    return [time_ns / 1e9 for time_ns in times[warm_up:]]


def submit_samples(
    torch: Any, work: Callable[[], object], *, inner: int, repeats: int, warm_up: int = 3
) -> list[float]:
    """CPU seconds per call, not waiting for the GPU: each sample submits `inner` calls to an idle device."""
    stopwatch, sample = GpuStopwatch(torch, flush=False), Repeated(work, inner)
    times = [stopwatch.host(sample).submit_ns / 1e9 / inner for _ in range(warm_up + repeats)]
    torch.cuda.synchronize()
    return times[warm_up:]
