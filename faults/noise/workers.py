"""What the processes of the noise study do: one recording of a program as `warpline run` makes it, or the stopwatch."""

from __future__ import annotations

import functools
import importlib
import lzma
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from faults.actor import Worker
from faults.captures import profiled_step_ns, record, scrubbed, text_of, write_compressed
from faults.jobs import Result
from faults.noise.programs import Program
from faults.stopwatch import per_step_ns

STEPS, SKIP, SETTLE_S, MAX_SKIP_FACTOR = 6, 8, 0.2, 3
"""As `warpline run` records by default: `warpline.capture.plan.Plan`."""
MEASURE, KEEP = "measure", "keep"
SLOWDOWN = 0.03
CYCLES_PER_NS = 1.7
"""About the clock of an H200: where the search for the right amount of extra work begins."""
SEARCHES, SEARCH_PAIRS, TRUE_PAIRS = 3, 6, 16
PAUSE_S, TIMED_STEPS = 0.05, 20
"""The stopwatch works in short bursts, as a recording does: a GPU that works without a pause reaches its power limit,
and there an idle spin costs more time, or less, than in a recording."""


def recording(build: Callable[[Any], Callable[[], object]], path: Path, tiny: bool) -> Worker:
    """A process that records some steps of what is built, and then writes them to a `.json.gz` or `.json.xz` file."""
    torch = torch_for(tiny)
    step = build(torch)
    record(torch, lambda: None, steps=1)  # the profiler's own cold start
    step()
    torch.cuda.synchronize()
    held: list[Any] = []

    def work(asked: Any) -> Result:
        if asked == MEASURE:
            settle(step)
            held[:] = [record(torch, step, steps=STEPS)]
            return {}
        text = scrubbed(text_of(held[0]), torch)
        if path.suffix == ".gz":
            write_compressed(text, path)
        else:
            path.write_bytes(lzma.compress(text.encode()))
        step_ns, busy_ns = profiled_step_ns(text)
        return {"file": path.name, "bytes": path.stat().st_size, "step_ns": step_ns, "busy_ns": busy_ns}

    return work


def settle(step: Callable[[], object]) -> None:
    """Runs as many bare steps as `warpline run` does before it records."""
    began, count = time.monotonic(), 0
    while count < SKIP or (time.monotonic() - began < SETTLE_S and count < MAX_SKIP_FACTOR * SKIP):
        step()
        count += 1


def stopwatch(program: Program, tiny: bool) -> Worker:
    """A process that finds the work that makes a step 3 % slower, and measures how much slower it really is."""
    torch = torch_for(tiny)
    step = program.build(torch, tiny)
    step(0)
    torch.cuda.synchronize()

    def burst(one: Callable[[], object]) -> float:
        time.sleep(PAUSE_S)
        settle(one)
        return per_step_ns(torch, one, TIMED_STEPS)

    def pairs(extra: int, count: int) -> tuple[list[float], list[float]]:
        """Times of a step without and with the extra work, in turn: A B, B A, A B, …"""
        times: tuple[list[float], list[float]] = ([], [])
        for number in range(count):
            for form in (0, 1) if number % 2 else (1, 0):
                times[form].append(burst(functools.partial(step, extra * form)))
        return times

    def work(asked: Any) -> Result:
        if isinstance(asked, int):
            a, b = pairs(asked, TRUE_PAIRS)
            ratios = [slow / fast for fast, slow in zip(a, b, strict=True)]
            return {"ratio": statistics.median(ratios), "a_ns": _whole(a), "b_ns": _whole(b)}
        if program.extra is not None:
            return {"extra": program.extra}
        extra = round(SLOWDOWN * statistics.median(pairs(0, SEARCH_PAIRS)[0]) * (1 if tiny else CYCLES_PER_NS))
        for _ in range(SEARCHES):
            a, b = pairs(extra, SEARCH_PAIRS)
            slower = statistics.median(slow / fast for fast, slow in zip(a, b, strict=True)) - 1
            extra = round(extra * min(max(SLOWDOWN / max(slower, 0.001), 0.4), 2.5))
        return {"extra": extra}

    return work


def describing(tiny: bool) -> Worker:
    """A process that says what it runs on."""
    torch = torch_for(tiny)
    device = "CPU" if tiny else torch.cuda.get_device_name()
    about = {"device": device, "torch": str(torch.__version__), "cuda": str(torch.version.cuda)}
    return lambda asked: about


def torch_for(tiny: bool) -> Any:
    """torch; where there is no GPU to wait for, a wait does nothing."""
    torch = importlib.import_module("torch")
    if tiny:
        torch.cuda.synchronize = lambda: None
        torch.set_num_threads(1)
    return torch


def _whole(times: list[float]) -> list[int]:
    return [round(ns) for ns in times]
