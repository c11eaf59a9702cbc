"""Take a measurement: warm-up, host times, then samples, of one function or of several that alternate."""

from __future__ import annotations

import contextlib
import gc
import platform
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from warpline.bench.graph import Refusal, Replay, capture
from warpline.bench.notes import notes_on
from warpline.bench.result import Note, Place, Result
from warpline.bench.sampling import SLOW_CALL_NS, collect, warmed
from warpline.bench.stopwatch import (
    CLOCK_READS_PER_SAMPLE,
    FLUSH_L2_MULTIPLE,
    CpuStopwatch,
    GpuStopwatch,
    Repeated,
    Stopwatch,
    WallStopwatch,
    event_overhead_ns,
    overhead_ns,
)
from warpline.bench.subject import Settings, Subject
from warpline.bench.submission import MIN_DETECTABLE_NS, hold_needed_ns, host_view, runs_elsewhere
from warpline.bench.summary import summarise
from warpline.bench.watch import watch_device
from warpline.bench.work import judge, roof_at_hand

WARM_SECONDS = 0.05
"""A GPU's clock rises from idle within tens of milliseconds."""
OTHER_STREAM = (
    "part of the work runs on another stream, which the events do not cover: timed on the host's "
    "clock instead, from an idle device until it is idle again, submission included"
)


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
    warm_up = warmed(stopwatch, subjects, settings, least_seconds=0.0)
    samples = collect(stopwatch, subjects, settings, None)
    torch = sys.modules.get("torch")
    place = Place(_cpu_name(), "cpu", str(torch.__version__) if torch else None, None, platform.python_version())
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
    warm_up = warmed(events, subjects, settings, WARM_SECONDS)
    for subject in subjects:
        subject.host = host_view(events, subject.calls, settings.now)
    stopwatch: Stopwatch = events
    overhead, idle_ns = event_overhead_ns(events), overhead_ns(WallStopwatch(events))
    if any(runs_elsewhere(subject, events, overhead, idle_ns) for subject in subjects):
        stopwatch, overhead = WallStopwatch(events), idle_ns
        for subject in subjects:
            subject.clock = "wall"
            subject.notes.append(Note("other-stream", "warning", OTHER_STREAM))
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
    place, clocks, roof = Place(str(properties.name), "cuda", *versions), watch.clocks(), roof_at_hand(properties)
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
    captured: Replay | Refusal = Refusal("it synchronises with the GPU")
    if subject.host is None or not subject.host.waits:
        expected_ns = min(stopwatch.time([subject.calls] * 3))
        captured = capture(torch, subject.calls, expected_ns, len(subject.calls.sets))
    if isinstance(captured, Refusal):
        message = f"it cannot be captured in a CUDA graph ({captured.reason}), so its calls were timed one by one"
        subject.notes.append(Note("no-graph", "warning", message))
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
    """Disable Python's garbage collector during the samples."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _cpu_name() -> str:
    return f"the CPU ({platform.machine()})"
