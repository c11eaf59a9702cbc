"""Warm-up and samples of one or several functions, which alternate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from warpline.bench.settle import WarmUp, settle
from warpline.bench.stopwatch import Stopwatch
from warpline.bench.subject import Settings, Subject
from warpline.bench.watch import Watch

WINDOW_NS = 20_000_000
WINDOW_CALLS = 25
WINDOW_SUBMIT_NS = 2_500_000
"""Submission time of one window: the driver queues 1,024 launches before one blocks, about 5 µs each."""
MIN_WINDOW_CALLS, SLOW_CALL_NS = 5, 100_000_000
"""Minimum calls per window, unless each takes long."""
MIN_SAMPLES, MAX_SAMPLES = 11, 2_000
"""Limits on the number of samples: an interval needs six, and more than two thousand do not improve it."""
MAX_TIME_FACTOR = 10
"""A function so slow that the minimum number of samples would take this many times the requested time gets fewer."""


def warmed(stopwatch: Stopwatch, subjects: Sequence[Subject], settings: Settings, least_seconds: float) -> WarmUp:
    """All functions, warmed up alternately: the times of a window are those of one round of them."""
    calls = [subject.call for subject in subjects]
    per_round = sum(subject.per_sample for subject in subjects)
    began = settings.now()
    stopwatch.time(calls)
    round_ns = settings.now() - began
    rounds = max(_rounds(round_ns), MIN_WINDOW_CALLS if round_ns < SLOW_CALL_NS else 1)

    def window() -> list[float]:
        times = stopwatch.time(calls * rounds)
        return [sum(times[start : start + len(calls)]) for start in range(0, len(times), len(calls))]

    warm_up = settle(window, settings.now, most_seconds=settings.warm_up_seconds, least_seconds=least_seconds)
    return replace(warm_up, calls=(warm_up.calls + 1) * per_round)


def collect(
    stopwatch: Stopwatch, subjects: Sequence[Subject], settings: Settings, watch: Watch | None
) -> list[list[float]]:
    """Samples of each function: one round forwards, the next backwards, so that drift affects all equally."""
    samples: list[list[float]] = [[] for _ in subjects]
    order = list(range(len(subjects)))
    now, read = settings.now, watch.read if watch is not None else None
    budget_ns, began = settings.seconds * 1e9, now()
    submit_ns = sum(subject.host.submit_ns if subject.host else 0.0 for subject in subjects)
    rounds = 1
    while True:
        sequence = [position for index in range(rounds) for position in (order if index % 2 == 0 else order[::-1])]
        window_began = now()
        times = stopwatch.time([subjects[position].call for position in sequence], read)
        for position, time_ns in zip(sequence, times, strict=True):
            samples[position].append(time_ns / subjects[position].per_sample)
        taken, spent_ns = len(samples[0]), now() - began
        late = spent_ns >= budget_ns
        if taken >= MAX_SAMPLES or (
            late and (taken >= MIN_SAMPLES or (spent_ns >= MAX_TIME_FACTOR * budget_ns and taken >= 3))
        ):
            return samples
        rounds = min(_rounds((now() - window_began) / rounds, submit_ns), MAX_SAMPLES - taken)


def _rounds(round_ns: float, submit_ns: float = 0.0) -> int:
    """The number of rounds per window."""
    most = min(WINDOW_CALLS, int(WINDOW_SUBMIT_NS / submit_ns) if submit_ns else WINDOW_CALLS)
    return max(1, min(most, int(WINDOW_NS / max(round_ns, 1.0))))
