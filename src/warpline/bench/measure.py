"""Take a measurement: warm-up, host times, then samples, of one function or of several that alternate."""

from __future__ import annotations

import contextlib
import gc
import platform
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from warpline.bench.notes import notes_on
from warpline.bench.result import BenchNote, Host, Platform, Result
from warpline.bench.settle import WarmUp, settle
from warpline.bench.stopwatch import (
    CLOCK_READS_PER_SAMPLE,
    FLUSH_L2_MULTIPLE,
    MIN_HOLD_NS,
    Call,
    CallStopwatch,
    CpuStopwatch,
    GpuStopwatch,
    HostTimes,
    Now,
    Repeated,
    WallStopwatch,
    event_overhead_ns,
    overhead_ns,
)
from warpline.bench.subject import Settings, Subject
from warpline.bench.summary import summarise
from warpline.bench.watch import DeviceWatch, watch_device
from warpline.bench.work import judge, roof_at_hand

WARM_SECONDS = 0.05
"""A GPU's clock rises from idle within tens of milliseconds."""
OTHER_STREAM = (
    "part of the work runs on another stream, which the events do not cover: timed on the host's "
    "clock instead, from an idle device until it is idle again, submission included"
)
REPLAY_NS = 2_000_000
"""Target length of a replay: the events' own time is then a thousandth of it."""
MAX_CAPTURED_CALLS = 2_000
CALLS_BEFORE_CAPTURE = 3
"""On a side stream, as torch.cuda.graph's documentation requires."""
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
HOST_CALLS, HOST_SECONDS = 21, 0.5
MAX_HOLD_NS = 5_000_000
OTHER_STREAM_FACTOR, OTHER_STREAM_NS = 1.5, 50_000
"""If the host waits this much longer than for submission and execution, the events do not cover all work."""
MIN_DETECTABLE_NS = 1_000
"""The smallest kernel adds over 2 µs to what two events read on an H200; two events alone vary by half of one."""


def measure(subjects: Sequence[Subject], settings: Settings, torch: Any | None) -> list[Result]:
    """The results of one or several functions, sampled alternately; on the CPU if no torch is given."""
    with _no_collections():
        if torch is None:
            return _on_cpu(subjects, settings)
        with _device_of(subjects, torch):
            return _on_gpu(subjects, settings, torch)


def nothing_ran(result: Result) -> bool:
    """Whether the events read no more than they do with nothing between them."""
    return result.clock == "events" and result.median_ns - result.overhead_ns < MIN_DETECTABLE_NS


def _on_cpu(subjects: Sequence[Subject], settings: Settings) -> list[Result]:
    stopwatch = CpuStopwatch(settings.now)
    resolution = stopwatch.resolution_ns()
    for subject in subjects:
        subject.clock = "cpu"
        few = 3 if subject.first_call_ns < SLOW_CALL_NS else 1
        expected = max(min(stopwatch.time([subject.calls] * few)), 1.0)
        subject.per_sample = max(1, round(CLOCK_READS_PER_SAMPLE * resolution / expected))
        subject.call = Repeated(subject.calls, subject.per_sample) if subject.per_sample > 1 else subject.calls
    warm_up = run_warm_up(stopwatch, subjects, settings, least_seconds=0.0)
    samples = collect(stopwatch, subjects, settings, None)
    torch = sys.modules.get("torch")
    place = Platform(_cpu_name(), "cpu", str(torch.__version__) if torch else None, None, platform.python_version())
    results = []
    for subject, taken in zip(subjects, samples, strict=True):
        warm = replace(warm_up, first_call_ns=subject.first_call_ns)
        overhead = resolution / subject.per_sample
        results.append(
            Result(
                subject.name,
                place,
                "cpu",
                "hot",
                subject.per_sample,
                overhead,
                warm,
                summarise(taken),
                tuple(taken),
                judgement=judge(subject.work, statistics.median(taken), None, cached_bytes=0) if subject.work else None,
                notes=tuple(subject.notes),
            )
        )
    return [replace(result, notes=(*result.notes, *notes_on(result, None, None))) for result in results]


def _on_gpu(subjects: Sequence[Subject], settings: Settings, torch: Any) -> list[Result]:
    flush = settings.flush and not settings.graph
    events = GpuStopwatch(torch, flush=flush, now=settings.now)
    watch = watch_device(torch)
    warm_up = run_warm_up(events, subjects, settings, WARM_SECONDS)
    for subject in subjects:
        subject.host = host_view(events, subject.calls, settings.now)
    stopwatch: CallStopwatch = events
    overhead, idle_ns = event_overhead_ns(events), overhead_ns(WallStopwatch(events))
    if any(runs_elsewhere(subject, events, overhead, idle_ns) for subject in subjects):
        stopwatch, overhead = WallStopwatch(events), idle_ns
        for subject in subjects:
            subject.clock = "wall"
            subject.notes.append(BenchNote("other-stream", "warning", OTHER_STREAM))
    else:
        for subject in subjects:
            if settings.graph:
                _capture(torch, subject, events)
        events.hold_ns = hold_needed_ns(events, subjects)
    stopwatch.time([subject.call for subject in subjects])
    watch.restart()
    samples = collect(stopwatch, subjects, settings, watch)
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    versions = (str(torch.__version__), torch.version.cuda, platform.python_version())
    place, clocks, roof = Platform(str(properties.name), "cuda", *versions), watch.clocks(), roof_at_hand(properties)
    results = []
    for subject, taken in zip(subjects, samples, strict=True):
        rotated = len(subject.calls.sets) > 1 and subject.calls.input_bytes >= FLUSH_L2_MULTIPLE * events.l2_bytes
        summary, work = summarise(taken), subject.work
        result = Result(
            subject.name,
            place,
            subject.clock,
            "flushed" if flush else "rotated" if rotated else "hot",
            subject.per_sample,
            overhead / subject.per_sample,
            replace(warm_up, first_call_ns=subject.first_call_ns),
            summary,
            tuple(taken),
            subject.host,
            clocks,
            judge(work, summary.median_ns, roof, cached_bytes=events.l2_bytes) if work else None,
            tuple(subject.notes),
        )
        results.append(replace(result, notes=(*result.notes, *notes_on(result, torch, subject.calls))))
    return results


def _capture(torch: Any, subject: Subject, stopwatch: GpuStopwatch) -> None:
    """The function as a graph of many calls, or a note saying why not."""
    captured: CapturedCalls | Refusal = Refusal("it synchronises with the GPU")
    if subject.host is None or not subject.host.waits:
        expected_ns = min(stopwatch.time([subject.calls] * 3))
        captured = capture(torch, subject.calls, expected_ns, len(subject.calls.sets))
    if isinstance(captured, Refusal):
        message = f"it cannot be captured in a CUDA graph ({captured.reason}), so its calls were timed one by one"
        subject.notes.append(BenchNote("no-graph", "warning", message))
        return
    subject.call, subject.per_sample, subject.clock = captured, captured.calls, "graph"


def _device_of(subjects: Sequence[Subject], torch: Any) -> contextlib.AbstractContextManager[Any]:
    """Make the device of the inputs the current one: events and buffers must be there too."""
    tensors = [tensor for subject in subjects for tensor in subject.calls.tensors()]
    indices = {tensor.device.index for tensor in tensors if getattr(tensor, "is_cuda", False)}
    index = indices.pop() if len(indices) == 1 else None
    if index is None or index == torch.cuda.current_device():
        return contextlib.nullcontext()
    return torch.cuda.device(index)


@contextlib.contextmanager
def _no_collections() -> Iterator[None]:
    """Disable Python's garbage collector during the samples: a collection in one would be timed as the program's."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _cpu_name() -> str:
    return f"the CPU ({platform.machine()})"


@dataclass(frozen=True, slots=True)
class CapturedCalls:
    """A captured graph of several calls."""

    graph: Any
    calls: int

    def __call__(self) -> None:
        """CapturedCalls all calls once."""
        self.graph.replay()


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the calls could not be captured."""

    reason: str


def capture(torch: Any, call: Call, expected_ns: float, sets: int) -> CapturedCalls | Refusal:
    """Capture as many calls as fill a replay, at least one for each set of inputs."""
    count = min(max(round(REPLAY_NS / max(expected_ns, 1.0)), sets), max(MAX_CAPTURED_CALLS, sets))
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    try:
        with torch.cuda.stream(stream):
            for _ in range(CALLS_BEFORE_CAPTURE):
                call()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(count):
                call()
        graph.replay()
        torch.cuda.synchronize()
    except RuntimeError as error:
        torch.cuda.synchronize()
        _forget_capture(torch)
        return Refusal(_reason(error))
    return CapturedCalls(graph, count)


def _forget_capture(torch: Any) -> None:
    """Reset the random generators: a failed capture leaves them marked as captured and unusable."""
    for generator in getattr(torch.cuda, "default_generators", ()):
        if hasattr(generator, "graphsafe_set_state"):
            generator.graphsafe_set_state(generator.clone_state())


def _reason(error: BaseException) -> str:
    """The original error: the end of a failed capture raises another one."""
    while error.__context__ is not None:
        error = error.__context__
    return (str(error).splitlines() or [""])[0].removeprefix("CUDA error: ")[:200] or type(error).__name__


def run_warm_up(
    stopwatch: CallStopwatch, subjects: Sequence[Subject], settings: Settings, least_seconds: float
) -> WarmUp:
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
    stopwatch: CallStopwatch, subjects: Sequence[Subject], settings: Settings, watch: DeviceWatch | None
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


def host_view(stopwatch: GpuStopwatch, call: Call, now: Now) -> Host:
    """Medians of some calls on an idle device."""
    began = now()
    times: list[HostTimes] = []
    while len(times) < HOST_CALLS and (len(times) < 3 or now() - began < HOST_SECONDS * 1e9):
        times.append(stopwatch.host(call))
    submit_ns = statistics.median(each.submit_ns for each in times)
    wall_ns = statistics.median(each.wall_ns for each in times)
    return Host(submit_ns, wall_ns, stopwatch.waits(call, submit_ns))


def hold_needed_ns(stopwatch: GpuStopwatch, subjects: Sequence[Subject]) -> float:
    """How long to block the stream so that a call is submitted before the GPU reaches it; 0 if impossible."""
    hold_ns = 0.0
    for subject in subjects:
        assert subject.host is not None
        submit_ns = stopwatch.host(subject.call).submit_ns if subject.clock == "graph" else subject.host.submit_ns
        needed_ns = _needed_ns(submit_ns)
        if not stopwatch.can_hold or subject.host.waits:
            continue
        if needed_ns > MAX_HOLD_NS:
            message = "submission takes too long to block the stream meanwhile: the time may include launch gaps"
            subject.notes.append(BenchNote("not-held", "info", message))
            continue
        hold_ns = max(hold_ns, needed_ns)
    return hold_ns


def _needed_ns(submit_ns: float) -> float:
    return 2 * submit_ns + MIN_HOLD_NS


def runs_elsewhere(subject: Subject, events: GpuStopwatch, overhead_ns: float, idle_ns: float) -> bool:
    """Whether the host waits much longer than the current stream: then the events do not cover all work.

    If they read nothing, the host must not wait longer than for an idle device.
    """
    host = subject.host
    assert host is not None
    events.hold_ns = min(_needed_ns(host.submit_ns), MAX_HOLD_NS) if events.can_hold else 0.0
    seen_ns = statistics.median(events.time([subject.calls] * 5))
    events.hold_ns = 0.0
    if seen_ns - overhead_ns < MIN_DETECTABLE_NS:
        return host.wall_ns - host.submit_ns > 2 * idle_ns
    return host.wall_ns > OTHER_STREAM_FACTOR * (host.submit_ns + seen_ns) + OTHER_STREAM_NS
