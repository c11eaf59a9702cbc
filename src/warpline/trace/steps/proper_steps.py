"""Tells steps from other repetition: layers of one pass, trials of a kernel, copies beside the real work.

What repeats is a step only if it is most of what the recording is about, and if the repeats are alike. Otherwise the
answer is about the whole recording.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from warpline.trace.arrays import NONE, Bools, Int64s, integers
from warpline.trace.link import Tables
from warpline.trace.names import rows_like
from warpline.trace.steps.period import LEAST_REPEATS

MOST = 2 / 3
"""Share of the GPU time that the steps must hold. Repeated layers of one recorded pass hold half of it."""
A_GOOD_PART = 1 / 3
"""Share that is enough where the steps span most of the recording: generated tokens after a long prompt."""
ALIKE = 2.0
"""Steps whose GPU time differs from the usual one by a larger factor are not alike."""
MOST_ALIKE = 0.5
"""More than this share of the steps must be alike: work of a second stream may run in the step after its own."""


def are_proper(steps: pl.DataFrame, tables: Tables) -> bool:
    """Whether steps that were found by repetition on the device are steps of the program."""
    gpu = tables["gpu"]
    starts, ends = integers(gpu["start_ns"]), integers(gpu["end_ns"])
    first, last = int(integers(steps["start_ns"])[0]), int(integers(steps["end_ns"])[-1])
    counted = ~loaded_before(gpu, starts)
    inside = (starts >= first) & (starts < last)
    length = ends - starts
    covered = int(length[inside & counted].sum()) / max(1, int(length[counted].sum()))
    spanned = (last - first) / max(1, int(ends.max() - starts[counted].min(initial=int(ends.max()))))
    if covered < MOST and not (covered >= A_GOOD_PART and spanned >= MOST):
        return False
    if _within_launches(steps, gpu, starts):
        return False
    return _alike(steps, starts[inside], length[inside]) and not _in_one_call_of_a_module(steps, tables)


def _within_launches(steps: pl.DataFrame, gpu: pl.DataFrame, starts: Int64s) -> bool:
    """Whether most steps begin inside one graph launch: then they are layers of what the graph holds."""
    calls, begins = integers(gpu["api_id"]), integers(steps["start_ns"])
    order = np.argsort(starts, kind="stable")
    first = np.searchsorted(starts[order], begins)
    before, after = calls[order[np.maximum(first - 1, 0)]], calls[order[np.minimum(first, len(order) - 1)]]
    inside = (first > 0) & (before == after) & (after != NONE)
    return bool(inside.mean() > MOST_ALIKE)


def loaded_before(gpu: pl.DataFrame, starts: Int64s) -> Bools:
    """Copies to the device before its first kernel: a model or a data set is loaded once, whatever is repeated then."""
    kernels = starts[rows_like(gpu, "^(kernel|graph)$", "kind")]
    loaded: Bools = rows_like(gpu, "^HtoD$", "copy_kind") & (starts < kernels.min(initial=np.iinfo(np.int64).max))
    return loaded if len(kernels) else np.zeros(len(gpu), bool)


def _alike(steps: pl.DataFrame, starts: Int64s, length: Int64s) -> bool:
    """Whether most of the steps have about as much GPU time."""
    begins, finishes = integers(steps["start_ns"]), integers(steps["end_ns"])
    step = np.searchsorted(begins, starts, side="right") - 1
    time = np.bincount(step, length, len(steps))
    usual = max(1.0, float(np.median(time)))
    if float(((time <= ALIKE * usual) & (time >= usual / ALIKE)).mean()) <= MOST_ALIKE:
        return False
    # Of two that take very different times, nobody can say which one is usual.
    took = finishes - begins
    return len(steps) >= LEAST_REPEATS or bool(took.max() <= ALIKE * took.min())


def _in_one_call_of_a_module(steps: pl.DataFrame, tables: Tables) -> bool:
    """Whether one call of an nn.Module launches all of them: then they are its layers."""
    python, gpu, api = tables["python"], tables["gpu"], tables["api"]
    if not len(python):
        return False
    calls = integers(gpu["api_id"])
    starts = integers(gpu["start_ns"])
    begins = np.append(integers(steps["start_ns"]), integers(steps["end_ns"])[-1:])
    inside = (starts >= begins[0]) & (starts < begins[-1]) & (calls != NONE)
    if not inside.any():
        return False
    moments, threads = (integers(api[name])[calls[inside]] for name in ("start_ns", "thread"))
    thread = int(np.bincount(threads[threads != NONE]).argmax())
    moments = moments[threads == thread]
    modules = python.filter(
        pl.col("thread") == thread,
        pl.col("module").is_not_null(),
        pl.col("start_ns") <= int(moments.min()),
        pl.col("end_ns") >= int(moments.max()),
    )
    return len(modules) > 0
