"""Tells steps from other repetition: layers of one pass, trials of a kernel, copies beside the real work.

What repeats is a step only if it is most of what the recording is about, and if the repeats are alike. Otherwise the
answer is about the whole recording.
"""

from __future__ import annotations

import numpy as np

from warpline.trace.arrays import NONE, Bools, Int64s, hashed, least_of
from warpline.trace.schema import Gpu, Python
from warpline.trace.steps.choice import FoundSteps
from warpline.trace.steps.period import LEAST_REPEATS
from warpline.trace.trace import Trace

MOST = 2 / 3
"""Share of the GPU time that the steps must hold. Repeated layers of one recorded pass hold half of it."""
A_GOOD_PART = 1 / 3
"""Share that is enough where the steps span most of the recording: generated tokens after a long prompt."""
ALIKE = 2.0
"""Steps whose GPU time differs from the usual one by a larger factor are not alike."""
NEARLY_ALL = 0.9
"""Share of the launches that one call of a module must hold to be the pass whose layers repeat."""
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
    if len(steps.start_ns) < LEAST_REPEATS and spanned < MOST:
        return False  # what comes twice in a corner of the recording says nothing about the rest
    if _within_launches(steps, gpu):
        return False
    return _alike(steps, starts[inside], length[inside]) and not _are_layers(steps, trace)


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


def _are_layers(steps: FoundSteps, trace: Trace) -> bool:
    """Whether the repeats are layers of one pass, where Python frames are recorded.

    Each calls other nn.Modules than the one before it, or one call of an nn.Module, with no others in it, launches them
    all. Steps call the same modules again.
    """
    gpu, api, python = trace.gpu, trace.api, trace.python
    inside = np.flatnonzero((gpu.start_ns >= steps.start_ns[0]) & (gpu.start_ns < steps.end_ns[-1]))
    inside = inside[gpu.api_id[inside] != NONE]
    if not len(python) or not len(inside):
        return False
    calls = api[gpu.api_id[inside]]
    thread = np.bincount(calls.thread[calls.thread != NONE]).argmax()
    own = calls.thread == thread
    moments = calls.start_ns[own]
    repeat = np.searchsorted(steps.start_ns, gpu.start_ns[inside][own], side="right") - 1
    begins = least_of(len(steps.start_ns), repeat, moments)
    modules = python[(python.thread == thread) & (python.module.codes != NONE)]
    return _other_modules(modules, begins, int(moments.max())) or _one_module(modules, moments)


def _other_modules(modules: Python, begins: Int64s, end: int) -> bool:
    """Whether most modules that a repeat calls are not those of the repeat before it."""
    called = modules[(modules.start_ns >= begins[0]) & (modules.start_ns <= end)]
    if (np.diff(begins) <= 0).any() or not len(called):
        return False
    repeat = np.searchsorted(begins, called.start_ns, side="right") - 1
    pairs = np.unique(np.stack([repeat, called.module.codes], axis=1), axis=0)
    again = np.isin(hashed(pairs[:, 0] - 1, pairs[:, 1]), hashed(pairs[:, 0], pairs[:, 1]))
    return bool(again[pairs[:, 0] > 0].mean() < MOST_ALIKE) if (pairs[:, 0] > 0).any() else False


def _one_module(modules: Python, moments: Int64s) -> bool:
    """Whether one call of a module launches nearly all, and none inside it is called twice."""
    around = modules[modules.end_ns - modules.start_ns > 0]
    launched = np.searchsorted(np.sort(moments), [around.start_ns, around.end_ns])
    whole = np.flatnonzero(launched[1] - launched[0] >= NEARLY_ALL * len(moments))
    if not len(whole):
        return False
    outer = around[whole]
    first, last = int(outer.start_ns.max()), int(outer.end_ns.min())
    inner = modules[(modules.start_ns > first) & (modules.end_ns < last)]
    return len(np.unique(inner.module.codes)) == len(inner)
