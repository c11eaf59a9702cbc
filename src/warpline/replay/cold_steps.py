"""Finds the steps of a recording that are cold: long once, for what the CPU does, with no more work for the device."""

from __future__ import annotations

import numpy as np

from warpline.analyses.idle.host_activity import activities
from warpline.intervals import EMPTY, Spans, union
from warpline.replay.replay import UNEVEN, are_uneven
from warpline.trace.arrays import NONE, Int64s
from warpline.trace.launches import launched_ns
from warpline.trace.steps.choice import ColdSteps, on_device
from warpline.trace.trace import Trace

LEAST_WARM = 2
"""Steps beside the cold ones: one alone does not show what is usual."""
LEAST_PREPARATION = 0.5
"""Share of what cold steps take beyond warm ones that is preparation: not work of the device and, unless the recording
begins with them, loading or compiling."""
LISTED = 5


def find_cold_steps(trace: Trace) -> ColdSteps | None:
    """The cold steps of a recording; None if there are none, if long steps come again and again, or if some steps were
    chosen. Callers ask `trace.once(find_cold_steps)`."""
    if trace.has_some_steps_chosen:
        return None
    starts, ends = trace.step_spans
    lengths = ends - starts
    if len(lengths) <= LEAST_WARM or not are_uneven(lengths.astype(np.float64)):
        return None
    long = np.flatnonzero(lengths > UNEVEN * np.median(lengths))
    warm = np.delete(lengths, long)
    if len(warm) < max(LEAST_WARM, len(long)) or long[-1] - long[0] >= len(long):
        return None
    usual = int(np.median(warm))
    once = int(lengths[long].sum()) - len(long) * usual
    if _more_work_ns(trace, long) > (1 - LEAST_PREPARATION) * once:
        return None
    first, beyond = int(starts[long[0]]), int(ends[long[-1]])
    if long[0] > 0 and _preparing_ns(trace, first, beyond) < LEAST_PREPARATION * once:
        return None
    return ColdSteps(
        first=int(long[0]),
        count=len(long),
        took_ns=int(lengths[long].sum()),
        once_ns=once,
        recorded=len(lengths),
        recorded_ns=int(lengths.sum()),
        ops=_slow_ops(trace, first, beyond, len(long), len(warm)),
    )


def cold_spans(trace: Trace) -> Spans:
    """From the first cold step of a recording to the last; nothing where steps were chosen."""
    cold = trace.once(find_cold_steps)
    if cold is None:
        return EMPTY
    steps, last = trace.all_steps, cold.first + cold.count - 1
    return union(steps.start_ns[cold.first : cold.first + 1], steps.end_ns[last : last + 1])


def _more_work_ns(trace: Trace, long: Int64s) -> float:
    """GPU time that the long steps have beyond as many others."""
    gpu, starts = trace.gpu, trace.all_steps.start_ns
    moment = gpu.start_ns if on_device(trace.all_steps) else launched_ns(gpu, trace.api)
    step = np.searchsorted(starts, moment, side="right") - 1
    inside = (step >= 0) & (moment < int(trace.all_steps.end_ns[-1]))
    time = np.bincount(step[inside], (gpu.end_ns - gpu.start_ns)[inside], len(starts))
    return float(time[long].sum() - len(long) * np.median(np.delete(time, long)))


def _preparing_ns(trace: Trace, start: int, end: int) -> int:
    """Time in which a launching thread loads, compiles or allocates."""
    calls = trace.gpu.api_id
    launching = np.unique(trace.api.thread[calls[calls != NONE]])
    known = activities(trace)
    starts, ends = np.full(len(launching), start), np.full(len(launching), end)
    spent = [known[label].covered_ns(launching, starts, ends).max(initial=0) for label in ("cold_start", "memory")]
    return int(max(spent))


def _slow_ops(trace: Trace, start: int, end: int, cold: int, warm: int) -> tuple[tuple[str, int], ...]:
    """Outermost ops of the cold steps, else API calls, by what they take beyond the usual; the longest first."""
    steps = trace.all_steps
    rows = trace.ops[trace.ops.depth == 0] if len(trace.ops) else trace.api
    in_view = (rows.start_ns >= steps.start_ns[0]) & (rows.start_ns <= steps.end_ns[-1])
    if on_device(steps):
        in_view = rows.start_ns < steps.end_ns[-1]
    rows = rows[in_view]
    starts_in, ends_in = ((moments >= start) & (moments <= end) for moments in (rows.start_ns, rows.end_ns))
    cold_ns, other_ns = np.zeros((2, len(rows.name.words)), np.int64)
    for total, chosen in ((cold_ns, starts_in | ends_in), (other_ns, ~(starts_in | ends_in))):
        np.add.at(total, rows.name.codes[chosen], (rows.end_ns - rows.start_ns)[chosen])
    beyond = (cold_ns - other_ns * cold // warm).tolist()
    slow = [(name, ns) for name, ns in zip(rows.name.words, beyond, strict=True) if ns > 0]
    return tuple(sorted(slow, key=lambda pair: (-pair[1], pair[0]))[:LISTED])
