"""Tells steps from other repetition: layers of one pass, trials of a kernel, copies beside the real work.

What repeats is a step only if it is most of what the recording is about, and if the repeats are alike. Otherwise the
answer is about the whole recording.
"""

from __future__ import annotations

import numpy as np

from warpline.trace.arrays import NONE, Bools, Int64s
from warpline.trace.schema import Gpu
from warpline.trace.steps.choice import FoundSteps
from warpline.trace.steps.period import LEAST_REPEATS
from warpline.trace.trace import Trace

MOST = 2 / 3
"""Share of the GPU time that the steps must hold. Repeated layers of one recorded pass hold half of it."""
A_GOOD_PART = 1 / 3
"""Share that is enough where the steps span most of the recording: generated tokens after a long prompt."""
ALIKE = 2.0
"""Steps whose GPU time differs from the usual one by a larger factor are not alike."""
MOST_ALIKE = 0.5
"""More than this share of the steps must be alike: work of a second stream may run in the step after its own."""


def are_proper(steps: FoundSteps, trace: Trace) -> bool:
    """Whether steps that were found by repetition on the device are steps of the program."""
    gpu = trace.gpu
    starts, ends = gpu.start_ns, gpu.end_ns
    first, last = int(steps.start_ns[0]), int(steps.end_ns[-1])
    counted = ~loaded_before(gpu)
    inside = (starts >= first) & (starts < last)
    length = ends - starts
    covered = int(length[inside & counted].sum()) / max(1, int(length[counted].sum()))
    spanned = (last - first) / max(1, int(ends.max() - starts[counted].min(initial=int(ends.max()))))
    if covered < MOST and not (covered >= A_GOOD_PART and spanned >= MOST):
        return False
    if _within_launches(steps, gpu):
        return False
    return _alike(steps, starts[inside], length[inside]) and not _in_one_call_of_a_module(steps, trace)


def _within_launches(steps: FoundSteps, gpu: Gpu) -> bool:
    """Whether most steps begin inside one graph launch: then they are layers of what the graph holds."""
    calls, first = gpu.api_id, np.searchsorted(gpu.start_ns, steps.start_ns)
    before, after = calls[np.maximum(first - 1, 0)], calls[np.minimum(first, len(gpu) - 1)]
    inside = (first > 0) & (before == after) & (after != NONE)
    return bool(inside.mean() > MOST_ALIKE)


def loaded_before(gpu: Gpu) -> Bools:
    """Copies to the device before its first kernel: a model or a data set is loaded once, whatever is repeated then."""
    kernels = gpu.start_ns[gpu.kind.equal("kernel", "graph")]
    if not len(kernels):
        return np.zeros(len(gpu), bool)
    return gpu.copy_kind.equal("HtoD") & (gpu.start_ns < kernels.min())


def _alike(steps: FoundSteps, starts: Int64s, length: Int64s) -> bool:
    """Whether most of the steps have about as much GPU time."""
    step = np.searchsorted(steps.start_ns, starts, side="right") - 1
    time = np.bincount(step, length, len(steps.start_ns))
    usual = max(1.0, float(np.median(time)))
    if float(((time <= ALIKE * usual) & (time >= usual / ALIKE)).mean()) <= MOST_ALIKE:
        return False
    # Of two that take very different times, nobody can say which one is usual.
    took = steps.end_ns - steps.start_ns
    return len(took) >= LEAST_REPEATS or bool(took.max() <= ALIKE * took.min())


def _in_one_call_of_a_module(steps: FoundSteps, trace: Trace) -> bool:
    """Whether one call of an nn.Module launches all of them: then they are its layers."""
    gpu, api, python = trace.gpu, trace.api, trace.python
    inside = (gpu.start_ns >= steps.start_ns[0]) & (gpu.start_ns < steps.end_ns[-1]) & (gpu.api_id != NONE)
    if not len(python) or not inside.any():
        return False
    calls = api[gpu.api_id[inside]]
    thread = np.bincount(calls.thread[calls.thread != NONE]).argmax()
    moments = calls.start_ns[calls.thread == thread]
    around = (python.thread == thread) & (python.start_ns <= moments.min()) & (python.end_ns >= moments.max())
    return bool((around & (python.module.codes != NONE)).any())
