"""What the processes of the noise study do: one recording of a program as `warpline run` makes it, or the stopwatch."""

from __future__ import annotations

import functools
import importlib
import lzma
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from faults.actor import Worker
from faults.captures import profiled_step_ns, record, scrubbed, text_of, write_compressed
from faults.jobs import Result
from faults.noise.programs import Program
from faults.stopwatch import per_step_ns
from warpline.capture.bare_step_timer import StepTime, StepTimer
from warpline.capture.plan import Plan

PLAN = Plan(folder="")
"""As `warpline run` records by default."""
MEASURE, KEEP = "measure", "keep"
SLOWDOWN, TOLERANCE = 0.03, 0.003
"""How much slower B is to be, and how far from it the stopwatch may find it."""
ELEMENTS_PER_NS = 500
"""About what an H200 reads and writes again: where the search for the right amount of extra work begins."""
SEARCHES, SEARCH_PAIRS, TRUE_PAIRS = 3, 16, 24
PAUSE_S, TIMED_STEPS, IN_TURN = 0.05, 10, "abbaabba"
"""The stopwatch works in short bursts of both forms in turn, with pauses as between recordings: a GPU that works
without a pause reaches its power limit, and a host that slows down slows both forms."""


def recording(build: Callable[[Any], Callable[[], object]], path: Path, tiny: bool) -> Worker:
    """A process that records some steps of what is built, and then writes them to a `.json.gz` or `.json.xz` file."""
    torch = torch_for(tiny)
    step = build(torch)
    record(torch, lambda: None, steps=1)  # the profiler's own cold start
    step()
    torch.cuda.synchronize()
    held: list[Any] = []
    bare: dict[str, Any] = {}

    def work(asked: Any) -> Result:
        if asked == MEASURE:
            bare.update(asdict(timed(torch, step)))
            held[:] = [record(torch, step, steps=PLAN.steps)]
            return {}
        text = scrubbed(text_of(held[0]), torch)
        if path.suffix == ".gz":
            write_compressed(text, path)
        else:
            path.write_bytes(lzma.compress(text.encode()))
        step_ns, busy_ns = profiled_step_ns(text)
        return {
            "file": path.name,
            "bytes": path.stat().st_size,
            "step_ns": step_ns,
            "busy_ns": busy_ns,
            "bare_step_ns": bare,
        }

    return work


def timed(torch: Any, step: Callable[[], object]) -> StepTime:
    """Runs as many bare steps as `warpline run` does before it records, and times them in the same way."""
    laps = StepTimer(torch)
    while not PLAN.has_settled(len(laps), laps.elapsed_s(), laps.are_uneven):
        step()
        laps.lap()
    summary = laps.summary()
    assert summary is not None
    return summary


def stopwatch(program: Program, tiny: bool) -> Worker:
    """A process that finds the work that makes a step 3 % slower, and measures how much slower it really is."""
    torch = torch_for(tiny)
    step = program.build(torch, tiny)
    step(0)
    torch.cuda.synchronize()

    def pairs(extra: int, count: int) -> tuple[list[float], list[float]]:
        """Times of a step without and with the extra work, in turn."""
        forms = {"a": functools.partial(step, 0), "b": functools.partial(step, extra)}
        times: dict[str, list[float]] = {"a": [], "b": []}
        while len(times["a"]) < count:
            time.sleep(PAUSE_S)
            timed(torch, forms["b"])
            for form in IN_TURN:
                times[form].append(per_step_ns(torch, forms[form], TIMED_STEPS))
        return times["a"], times["b"]

    def work(asked: Any) -> Result:
        if isinstance(asked, int):
            a, b = pairs(asked, TRUE_PAIRS)
            return {"extra": asked, "ratio": typical_ratio(a, b), "a_ns": _whole(a), "b_ns": _whole(b)}
        if program.extra is not None:
            return {"extra": program.extra}
        step_ns = statistics.median(pairs(0, SEARCH_PAIRS)[0])
        tried = [(round(SLOWDOWN * step_ns * ELEMENTS_PER_NS), 0.0)]
        for _ in range(SEARCHES):
            extra = tried[-1][0]
            tried[-1] = (extra, typical_ratio(*pairs(extra, SEARCH_PAIRS)) - 1)
            tried.append((corrected(tried), 0.0))
        return {"extra": tried[-1][0]}

    return work


def typical_ratio(a: list[float], b: list[float]) -> float:
    """Time of B over that of A: the median of neighbours in time."""
    return statistics.median(slow / fast for fast, slow in zip(a, b, strict=True))


def corrected(tried: Sequence[tuple[int, float]]) -> int:
    """The extra work that makes a step 3 % slower, by all that were tried: each with how much slower it was. What it
    costs is taken as proportional to it (least squares); it is changed by a factor of four at most."""
    extra = tried[-1][0]
    cost = sum(amount * slower for amount, slower in tried) / sum(amount**2 for amount, _ in tried)
    return round(min(max(SLOWDOWN / max(cost, 1e-12), extra / 4), extra * 4))


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
