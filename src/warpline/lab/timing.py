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


def run(lab: Workbench) -> Observation:
    """Each way once, and `bench` as the measure of them."""
    torch, size = lab.torch, 4096
    a, b = (lab.random(size, size, dtype="bfloat16") for _ in range(2))
    zeros = torch.zeros_like(a)
    with torch.no_grad():
        # A shape that nobody has used yet: the library chooses and loads a kernel for it.
        first = lab.random(size - 64, size, dtype="bfloat16")
        cold = _awaited(lab, lambda: first @ b, 1, warm=False)
        right = lab.time(torch.mm, a, b, name="bench", flops=2.0 * size**3, dtype="bf16")
        true_ns = right.median_ns
        ways: tuple[tuple[str, float, str], ...] = (
            ("first call of a new shape", cold, "wrong: it includes choosing and loading a kernel"),
            (
                "clock, no synchronisation",
                _not_awaited(lab, lambda: a @ b),
                "wrong: the CPU has queued the kernel, no more",
            ),
            (
                "clock, synchronised after one call",
                _awaited(lab, lambda: a @ b, 1),
                "too long: launch and wait are in it; one sample",
            ),
            (
                f"clock, synchronised after {REPEATS} calls",
                _awaited(lab, lambda: a @ b, REPEATS),
                "good if the GPU is the slower; operands stay in the L2",
            ),
            (
                f"events around {REPEATS} calls",
                _with_events(lab, lambda: a @ b),
                "good: the GPU's own clock; operands stay in the L2",
            ),
            ("bench, L2 not flushed", lab.time(torch.mm, a, b, flush=False).median_ns, "right for data in the cache"),
            (
                "bench, all zeros",
                lab.time(torch.mm, zeros, zeros, flush=True).median_ns,
                "wrong data: zeros draw less power, and the clock stays higher",
            ),
            ("bench", true_ns, "right: warmed up, L2 flushed, random data, a median with its interval"),
        )
    flops = 2.0 * size**3
    rows: tuple[tuple[LabValue, ...], ...] = tuple(
        (name, ns, ns / true_ns, round(flops / ns / 1e3, 1), what) for name, ns, what in ways
    )
    columns = (
        LabColumn("way", "way"),
        LabColumn("time_ns", "time", "ns"),
        LabColumn("times", "of bench", "gain"),
        LabColumn("tflops", "TFLOP/s it claims", "number"),
        LabColumn("judgement", "judgement"),
    )
    table = LabTable("ways", f"A matmul of {size:,} in bf16", columns, rows)
    return Observation(_seen(rows, true_ns), WHY, (table,))


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
    times = {str(row[0]): float(row[1]) for row in rows if isinstance(row[1], int | float)}
    early, cold = times["clock, no synchronisation"], times["first call of a new shape"]
    return (
        f"The matmul takes {duration(true_ns)}. Without a synchronisation the clock says {duration(early)}, and the "
        f"first call {duration(cold)}."
    )


WHY = (
    "A call returns when its kernel is queued, not when it has run, so a clock without a synchronisation times the "
    "queue. The first call pays for loading and choosing; a second call finds its operands in the cache."
)
EXPERIMENT = LabExperiment("timing", "How far are common ways of timing from the truth?", run, needs_gpu=True)
