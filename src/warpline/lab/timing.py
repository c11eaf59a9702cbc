"""Timing: several ways to time the same matmul, most of them wrong."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from warpline.lab.model import LabColumn, LabExperiment, LabTable, LabValue, Observation
from warpline.lab.workbench import Workbench
from warpline.units import duration

REPEATS, READINGS = 20, 5
FIRST, EARLY = "first call of a new shape", "clock, no synchronisation"

Way = tuple[str, float, str]
"""What it is called, the time that it finds, and what is right or wrong with it."""


def run(lab: Workbench) -> Observation:
    """Each way once, and `bench` as the measure of them."""
    torch, size = lab.torch, lab.sized(4096, 256)
    a, b = (lab.random(size, size, dtype="bfloat16") for _ in range(2))
    flops, dtype = 2.0 * size**3, "bf16" if lab.has_gpu else "fp32"
    with torch.no_grad():
        # A shape that nobody has used yet: the library chooses and loads a kernel for it.
        first = lab.random(size - 64, size, dtype="bfloat16")
        cold = _awaited(lab, lambda: first @ b, 1, warm=False)
        true_ns = lab.time(torch.mm, a, b, name="bench", flops=flops, dtype=dtype).median_ns
        ways: tuple[Way, ...] = (
            (FIRST, cold, "wrong: it includes choosing and loading a kernel"),
            *(_on_gpu(lab, a, b) if lab.has_gpu else _on_cpu(lab, a, b)),
            ("bench", true_ns, "right: warmed up, caches flushed, random data, a median with its interval"),
        )
    rows: tuple[tuple[LabValue, ...], ...] = tuple(
        (name, ns, ns / true_ns, round(flops / ns / 1e3, 3), what) for name, ns, what in ways
    )
    columns = (
        LabColumn("way", "way"),
        LabColumn("time_ns", "time", "ns"),
        LabColumn("times", "of bench", "gain"),
        LabColumn("tflops", "TFLOP/s it claims", "number"),
        LabColumn("judgement", "judgement"),
    )
    table = LabTable("ways", f"A matmul of {size:,} in {dtype}", columns, rows)
    return Observation(_seen(rows, true_ns), WHY if lab.has_gpu else WHY_ON_CPU, (table,))


def _on_gpu(lab: Workbench, a: Any, b: Any) -> tuple[Way, ...]:
    def call() -> Any:
        return a @ b

    mm, zeros = lab.torch.mm, lab.torch.zeros_like(a)
    return (
        (EARLY, _not_awaited(lab, call), "wrong: the CPU has queued the kernel, no more"),
        (
            "clock, synchronised after one call",
            _awaited(lab, call, 1),
            "too long: launch and wait are in it; one sample",
        ),
        (
            f"clock, synchronised after {REPEATS} calls",
            _awaited(lab, call, REPEATS),
            "good if the GPU is the slower; operands stay in the L2",
        ),
        (
            f"events around {REPEATS} calls",
            _with_events(lab, call),
            "good: the GPU's own clock; operands stay in the L2",
        ),
        ("bench, L2 not flushed", lab.time(mm, a, b, flush=False).median_ns, "right for data in the cache"),
        (
            "bench, all zeros",
            lab.time(mm, zeros, zeros, flush=True).median_ns,
            "wrong data: zeros draw less power, and the clock stays higher",
        ),
    )


def _on_cpu(lab: Workbench, a: Any, b: Any) -> tuple[Way, ...]:
    """A call returns when it has run, so that there is nothing to wait for."""

    def call() -> Any:
        return a @ b

    return (
        ("clock around one call", _awaited(lab, call, 1), "one sample: how far the next one is from it is unknown"),
        (
            f"clock around {REPEATS} calls",
            _awaited(lab, call, REPEATS),
            "a mean: one interrupted call makes all longer; operands stay in the cache",
        ),
    )


def _not_awaited(lab: Workbench, call: Callable[[], Any]) -> float:
    """The middle one of some readings, each on an idle device."""
    readings = []
    for _ in range(READINGS):
        lab.synchronise()
        began = time.perf_counter_ns()
        call()
        readings.append(time.perf_counter_ns() - began)
    return float(statistics.median(readings))


def _awaited(lab: Workbench, call: Callable[[], Any], repeats: int, warm: bool = True) -> float:
    if warm:
        call()
    lab.synchronise()
    began = time.perf_counter_ns()
    for _ in range(repeats):
        call()
    lab.synchronise()
    return (time.perf_counter_ns() - began) / repeats


def _with_events(lab: Workbench, call: Callable[[], Any]) -> float:
    start, end = (lab.torch.cuda.Event(enable_timing=True) for _ in range(2))
    lab.synchronise()
    start.record()
    for _ in range(REPEATS):
        call()
    end.record()
    lab.synchronise()
    return float(start.elapsed_time(end)) * 1e6 / REPEATS


def _seen(rows: tuple[tuple[LabValue, ...], ...], true_ns: float) -> str:
    times = {str(row[0]): duration(float(row[1])) for row in rows if isinstance(row[1], int | float)}
    early = f"Without a synchronisation the clock says {times[EARLY]}, and the" if EARLY in times else "The"
    return f"The matmul takes {duration(true_ns)}. {early} first call takes {times[FIRST]}."


WHY = (
    "A call returns when its kernel is queued, not when it has run, so a clock without a synchronisation times the "
    "queue. The first call pays for loading and choosing; a second call finds its operands in the cache."
)
WHY_ON_CPU = (
    "The first call pays for choosing and loading; a second call finds its operands in the cache. Another program may "
    "interrupt any call, so that one sample, or a mean, says little. What a missing synchronisation does needs a GPU."
)
EXPERIMENT = LabExperiment("timing", "How far are common ways of timing from the truth?", run)
