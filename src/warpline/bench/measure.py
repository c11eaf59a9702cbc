"""Takes a measurement: first call, warm-up, the host's view, then samples, one function alone or two in turn."""

from __future__ import annotations

import contextlib
import gc
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from warpline.bench.calls import Calls
from warpline.bench.graph import Refusal, Replay, capture
from warpline.bench.notes import notes_on
from warpline.bench.result import Clock, Host, Note, Place, Result
from warpline.bench.settle import WarmUp, settle
from warpline.bench.stopwatch import (
    CLOCK_READS_PER_SAMPLE,
    L2_TIMES,
    SHORTEST_HOLD_NS,
    Call,
    CpuStopwatch,
    GpuStopwatch,
    HostTimes,
    Now,
    Repeated,
    Stopwatch,
    WallStopwatch,
    event_overhead_ns,
    overhead_ns,
)
from warpline.bench.summary import summarise
from warpline.bench.watch import Watch, watch_device
from warpline.bench.work import Work, judge, roof_at_hand

WINDOW_NS = 20_000_000
WINDOW_CALLS = 25
WINDOW_SUBMIT_NS = 2_500_000
"""Submitted ahead in one window: the driver queues 1,024 launches before one waits, some 5 µs each."""
LEAST_WINDOW, SLOW_NS = 5, 100_000_000
"""Fewer calls than this make no window to speak of, unless each takes long."""
WARM_SECONDS = 0.05
"""A GPU's clock rises from idle within some tens of milliseconds."""
FEWEST, MOST = 11, 2_000
"""Samples: an interval needs six, and two thousand are no better than one."""
PATIENCE = 10
"""A function so slow that the fewest samples would take this many times the time asked for gets fewer."""
HOST_CALLS, HOST_SECONDS = 21, 0.5
LONGEST_HOLD_NS = 5_000_000
ELSEWHERE_TIMES, ELSEWHERE_NS = 1.5, 50_000
ELSEWHERE = (
    "part of the work runs on another stream than the current one, which its events do not see: timed on the host's "
    "clock instead, from an idle device until it is idle again, submission included"
)
NOTHING_NS = 1_000
"""The smallest kernel adds over 2 µs to what two events read on an H200; two events alone vary by half of one."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How to measure."""

    flush: bool = True
    graph: bool = False
    seconds: float = 0.5
    warm_up_seconds: float = 3.0
    now: Now = time.perf_counter_ns


@dataclass(slots=True)
class Subject:
    """One function being measured."""

    name: str
    calls: Calls
    work: Work | None
    call: Call = field(init=False)
    """What one sample runs."""
    per_sample: int = 1
    clock: Clock = "events"
    host: Host | None = None
    notes: list[Note] = field(default_factory=list)
    first_call_ns: float = 0.0

    def __post_init__(self) -> None:
        self.call = self.calls


def measure(subjects: Sequence[Subject], settings: Settings, torch: Any | None) -> list[Result]:
    """The results of one or several functions, sampled in turn; on the CPU where no torch is given."""
    with _no_collections():
        return _on_cpu(subjects, settings) if torch is None else _on_gpu(subjects, settings, torch)


def first_call(subject: Subject, now: Now, synchronise: Callable[[], None]) -> None:
    """The function once, with whatever it loads, compiles or allocates."""
    synchronise()
    began = now()
    subject.calls()
    synchronise()
    subject.first_call_ns = now() - began


def nothing_ran(result: Result) -> bool:
    """Whether the events read no more than they do with nothing between them."""
    return result.clock == "events" and result.median_ns - result.overhead_ns < NOTHING_NS


def _on_cpu(subjects: Sequence[Subject], settings: Settings) -> list[Result]:
    stopwatch = CpuStopwatch(settings.now)
    resolution = stopwatch.resolution_ns()
    for subject in subjects:
        subject.clock = "cpu"
        expected = max(min(stopwatch.time([subject.calls] * 3)), 1.0)
        subject.per_sample = max(1, round(CLOCK_READS_PER_SAMPLE * resolution / expected))
        subject.call = Repeated(subject.calls, subject.per_sample) if subject.per_sample > 1 else subject.calls
    warm_up = _warmed(stopwatch, subjects, settings, least_seconds=0.0)
    samples = collect(stopwatch, subjects, settings, None)
    torch = sys.modules.get("torch")
    place = Place(_cpu_name(), "cpu", str(torch.__version__) if torch else None, None, platform.python_version())
    results = []
    for subject, taken in zip(subjects, samples, strict=True):
        warm = replace(warm_up, first_call_ns=subject.first_call_ns)
        overhead = resolution / subject.per_sample
        results.append(
            Result(
                subject.name, place, "cpu", "hot", subject.per_sample, overhead, warm, summarise(taken), tuple(taken),
                judgement=judge(subject.work, statistics.median(taken), None, cached_bytes=0) if subject.work else None,
                notes=tuple(subject.notes),
            )
        )  # fmt: skip
    return [replace(result, notes=(*result.notes, *notes_on(result, None, None))) for result in results]


def _on_gpu(subjects: Sequence[Subject], settings: Settings, torch: Any) -> list[Result]:
    flush = settings.flush and not settings.graph
    events = GpuStopwatch(torch, flush=flush, now=settings.now)
    watch = watch_device(torch)
    warm_up = _warmed(events, subjects, settings, WARM_SECONDS)
    for subject in subjects:
        subject.host = _host(events, subject.calls, settings.now)
    stopwatch: Stopwatch = events
    overhead, idle_ns = event_overhead_ns(events), overhead_ns(WallStopwatch(events))
    if any(_elsewhere(subject, events, overhead, idle_ns) for subject in subjects):
        stopwatch, overhead = WallStopwatch(events), idle_ns
        for subject in subjects:
            subject.clock = "wall"
            subject.notes.append(Note("other-stream", "warning", ELSEWHERE))
    else:
        for subject in subjects:
            if settings.graph:
                _capture(torch, subject, events)
        events.hold_ns = _hold_ns(events, subjects)
    stopwatch.time([subject.call for subject in subjects])
    watch.restart()
    samples = collect(stopwatch, subjects, settings, watch)
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    versions = (str(torch.__version__), str(torch.version.cuda), platform.python_version())
    place, clocks, roof = Place(str(properties.name), "cuda", *versions), watch.clocks(), roof_at_hand(properties)
    results = []
    for subject, taken in zip(subjects, samples, strict=True):
        rotated = len(subject.calls.sets) > 1 and subject.calls.input_bytes >= L2_TIMES * events.l2_bytes
        summary, work = summarise(taken), subject.work
        result = Result(
            subject.name, place, subject.clock, "flushed" if flush else "rotated" if rotated else "hot",
            subject.per_sample, overhead / subject.per_sample,
            replace(warm_up, first_call_ns=subject.first_call_ns), summary, tuple(taken), subject.host, clocks,
            judge(work, summary.median_ns, roof, cached_bytes=events.l2_bytes) if work else None,
            tuple(subject.notes),
        )  # fmt: skip
        results.append(replace(result, notes=(*result.notes, *notes_on(result, torch, subject.calls))))
    return results


def _warmed(stopwatch: Stopwatch, subjects: Sequence[Subject], settings: Settings, least_seconds: float) -> WarmUp:
    """All functions warmed up in turn: a window's times are those of one round of them."""
    calls = [subject.call for subject in subjects]
    per_round = sum(subject.per_sample for subject in subjects)
    began = settings.now()
    stopwatch.time(calls)
    round_ns = settings.now() - began
    rounds = max(_rounds(round_ns), LEAST_WINDOW if round_ns < SLOW_NS else 1)

    def window() -> list[float]:
        times = stopwatch.time(calls * rounds)
        return [sum(times[start : start + len(calls)]) for start in range(0, len(times), len(calls))]

    warm_up = settle(window, settings.now, most_seconds=settings.warm_up_seconds, least_seconds=least_seconds)
    return replace(warm_up, calls=(warm_up.calls + 1) * per_round)


def collect(
    stopwatch: Stopwatch, subjects: Sequence[Subject], settings: Settings, watch: Watch | None
) -> list[list[float]]:
    """Samples of each function, in turn: one round forwards, the next backwards, so that drift hits all alike."""
    samples: list[list[float]] = [[] for _ in subjects]
    order = list(range(len(subjects)))
    now, read = settings.now, watch.read if watch is not None else None
    budget_ns, began = settings.seconds * 1e9, now()
    submit_ns = sum(subject.host.submit_ns if subject.host else 0.0 for subject in subjects)
    rounds = 1
    while True:
        turns = [position for turn in range(rounds) for position in (order if turn % 2 == 0 else order[::-1])]
        window_began = now()
        times = stopwatch.time([subjects[position].call for position in turns], read)
        for position, time_ns in zip(turns, times, strict=True):
            samples[position].append(time_ns / subjects[position].per_sample)
        taken, spent_ns = len(samples[0]), now() - began
        late = spent_ns >= budget_ns
        if taken >= MOST or (late and (taken >= FEWEST or (spent_ns >= PATIENCE * budget_ns and taken >= 3))):
            return samples
        rounds = min(_rounds((now() - window_began) / rounds, submit_ns), MOST - taken)


def _rounds(round_ns: float, submit_ns: float = 0.0) -> int:
    """How many rounds a window has."""
    most = min(WINDOW_CALLS, int(WINDOW_SUBMIT_NS / submit_ns) if submit_ns else WINDOW_CALLS)
    return max(1, min(most, int(WINDOW_NS / max(round_ns, 1.0))))


def _host(stopwatch: GpuStopwatch, call: Call, now: Now) -> Host:
    """Medians of some calls on an idle device."""
    began = now()
    times: list[HostTimes] = []
    while len(times) < HOST_CALLS and (len(times) < 3 or now() - began < HOST_SECONDS * 1e9):
        times.append(stopwatch.host(call))
    submit_ns = statistics.median(each.submit_ns for each in times)
    wall_ns = statistics.median(each.wall_ns for each in times)
    return Host(submit_ns, wall_ns, stopwatch.waits(call, submit_ns))


def _hold_ns(stopwatch: GpuStopwatch, subjects: Sequence[Subject]) -> float:
    """How long to hold the stream so that a call is submitted before the GPU reaches it; 0 where that cannot be."""
    hold_ns = 0.0
    for subject in subjects:
        assert subject.host is not None
        submit_ns = stopwatch.host(subject.call).submit_ns if subject.clock == "graph" else subject.host.submit_ns
        needed_ns = _needed_ns(submit_ns)
        if not stopwatch.can_hold or subject.host.waits:
            continue
        if needed_ns > LONGEST_HOLD_NS:
            message = "submitting it takes too long to hold the GPU meanwhile: its time may contain gaps for launches"
            subject.notes.append(Note("not-held", "info", message))
            continue
        hold_ns = max(hold_ns, needed_ns)
    return hold_ns


def _needed_ns(submit_ns: float) -> float:
    return 2 * submit_ns + SHORTEST_HOLD_NS


def _elsewhere(subject: Subject, events: GpuStopwatch, overhead_ns: float, idle_ns: float) -> bool:
    """Whether the host waits for far more than the current stream does: then the events do not see all of the work.

    Where they see nothing at all, the host must not wait for longer than it does for an idle device.
    """
    host = subject.host
    assert host is not None
    events.hold_ns = min(_needed_ns(host.submit_ns), LONGEST_HOLD_NS) if events.can_hold else 0.0
    seen_ns = statistics.median(events.time([subject.calls] * 5))
    events.hold_ns = 0.0
    if seen_ns - overhead_ns < NOTHING_NS:
        return host.wall_ns - host.submit_ns > 2 * idle_ns
    return host.wall_ns > ELSEWHERE_TIMES * (host.submit_ns + seen_ns) + ELSEWHERE_NS


def _capture(torch: Any, subject: Subject, stopwatch: GpuStopwatch) -> None:
    """The function as a graph of many calls, or a note of why not."""
    captured: Replay | Refusal = Refusal("it waits for the GPU itself")
    if subject.host is None or not subject.host.waits:
        expected_ns = min(stopwatch.time([subject.calls] * 3))
        captured = capture(torch, subject.calls, expected_ns, len(subject.calls.sets))
    if isinstance(captured, Refusal):
        message = f"it cannot be captured in a CUDA graph ({captured.reason}), so it was timed call by call"
        subject.notes.append(Note("no-graph", "warning", message))
        return
    subject.call, subject.per_sample, subject.clock = captured, captured.calls, "graph"


@contextlib.contextmanager
def _no_collections() -> Iterator[None]:
    """Keeps Python's garbage collector out of the samples."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _cpu_name() -> str:
    return f"the CPU ({platform.machine()})"
