"""Times the forms of a kernel case with CUDA events, and compares their results."""

from __future__ import annotations

import statistics
from typing import Any

from faults.kernels.case import FIXED, FLAWED, Buffers, Form, KernelCase
from faults.kernels.launch import run_form

WARM_UPS = 3
BUDGET_MS = 150.0
"""GPU time spent on one form."""
FEWEST, MOST = 7, 60
"""Timed launches of one form."""


def _once_ms(torch: Any, form: Form, which: str, buffers: Buffers, flush: Any) -> float:
    """One launch with a cold L2 cache. The flush also covers the launch's own latency on the CPU."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    flush.zero_()
    begin.record()
    run_form(torch, form, which, buffers)
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end))


def time_form(torch: Any, form: Form, which: str, buffers: Buffers, flush: Any) -> dict[str, Any]:
    """The median of many launches, in microseconds, and the spread."""
    for _ in range(WARM_UPS):
        probe_ms = _once_ms(torch, form, which, buffers, flush)
    count = int(min(MOST, max(FEWEST, BUDGET_MS / max(probe_ms, 1e-3))))
    samples = sorted(1e3 * _once_ms(torch, form, which, buffers, flush) for _ in range(count))
    return {
        "median_us": round(statistics.median(samples), 3),
        "low_us": round(samples[len(samples) // 10], 3),
        "high_us": round(samples[-1 - len(samples) // 10], 3),
        "launches": count,
    }


def _results(torch: Any, form: Form, which: str, case: KernelCase, buffers: Buffers) -> list[Any]:
    """The outputs of one launch into zeroed buffers."""
    for name in case.outputs:
        buffers[name].zero_()
    run_form(torch, form, which, buffers)
    torch.cuda.synchronize()
    return [buffers[name].double().cpu() for name in case.outputs]


def largest_difference(torch: Any, case: KernelCase, buffers: Buffers) -> float:
    """Between the two forms' outputs, relative to the largest output."""
    assert case.fixed is not None
    ours = _results(torch, case.flawed, FLAWED, case, buffers)
    theirs = _results(torch, case.fixed, FIXED, case, buffers)
    worst = 0.0
    for one, other in zip(ours, theirs, strict=True):
        scale = float(one.abs().max())
        if scale == 0.0 or not bool(torch.isfinite(one).all()):
            return float("inf")  # nothing was computed
        worst = max(worst, float((one - other).abs().max()) / scale)
    return worst


def measure_case(torch: Any, case: KernelCase, flush: Any) -> dict[str, Any]:
    """Times and checks one case. What goes wrong is in `error`."""
    row: dict[str, Any] = {"case": case.name, "reason": case.reason, "forms": {}}
    try:
        buffers = case.buffers(torch)
        if case.fixed is not None:
            difference = largest_difference(torch, case, buffers)
            row["largest_difference"] = difference
            row["same_result"] = difference <= case.tolerance
        for which, form in case.forms().items():
            row["forms"][which] = time_form(torch, form, which, buffers, flush)
        if case.fixed is not None:
            row["gain"] = round(row["forms"][FLAWED]["median_us"] / row["forms"][FIXED]["median_us"], 4)
    except Exception as error:  # a case that fails costs only itself
        row["error"] = f"{type(error).__name__}: {str(error)[:600]}"
    torch.cuda.empty_cache()
    return row
