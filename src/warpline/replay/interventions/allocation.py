"""Fixes of memory: no calls to the driver's allocator inside the step, no growing by copying."""

from __future__ import annotations

import numpy as np

from warpline import api_names
from warpline.kernels import KernelIdentity
from warpline.replay.bench import NOTHING, Bench
from warpline.replay.interventions.registry import PESSIMISTIC, Range, intervention
from warpline.replay.model import Int64s
from warpline.replay.scene import Scene

APPENDED = Range(0.01, 0.03, 0.3, "not measured yet: a cautious range")
"""Share of a concatenation that remains when only the new part is written into a buffer."""


FILLS = ("aten::zeros", "aten::zeros_like", "aten::new_zeros", "aten::ones", "aten::full")
MAKES_COPIES = ("aten::clone", "aten::contiguous", "aten::_to_copy", "aten::cat")
LARGE_FILL_NS = 5_000
"""Fills shorter than this are not worth keeping a buffer for."""


def _calls(scene: Scene, pattern: str) -> Int64s:
    return np.flatnonzero(scene.calls_like(pattern) & scene.in_steps)


def _drop(bench: Bench, calls: Int64s) -> None:
    """The calls go; what the program did before them stays."""
    bench.graph.duration[calls] = 0.0
    bench.stop_waiting(calls)


@intervention(
    "no_empty_cache",
    35,
    "The allocator's cache is not emptied inside the step, so that nothing is freed and allocated anew.",
    "Frees and allocations of device memory within steps come from emptying the cache.",
    "The worst case keeps the allocations and drops only the frees, with their implicit synchronisation.",
)
def no_empty_cache(bench: Bench, case: int) -> int:
    """No frees, no allocations."""
    frees = _calls(bench.scene, api_names.EMPTY_CACHE_FREE)
    if not len(frees):
        return 0
    calls = frees if case == PESSIMISTIC else np.union1d(frees, _calls(bench.scene, api_names.ALLOCATION))
    _drop(bench, calls)
    return len(calls)


def _concatenates(identity: KernelIdentity) -> bool:
    return identity.op in {"cat", "concat", "stack"}


@intervention(
    "preallocate",
    35,
    "Buffers are allocated once, before the loop, and filled in place.",
    "Allocations inside the step disappear.",
    "Concatenations that grow a tensor write only the new part.",
    "Large buffers are not filled anew, and what is copied into their parts is written there in the first place.",
)
def preallocate(bench: Bench, case: int) -> int:
    """No allocations, short concatenations."""
    scene = bench.scene
    # Memory that is given back inside the step comes from emptying the cache: another fix.
    frees = len(_calls(scene, api_names.EMPTY_CACHE_FREE))
    calls = NOTHING if frees else _calls(scene, api_names.ALLOCATION)
    _drop(bench, calls)
    joins = scene.kernels_where(_concatenates) | scene.under_op("aten::cat")
    grown = np.flatnonzero(joins & scene.is_work & scene.in_steps & ~bench.gone)
    now = bench.graph.duration[grown]
    bench.shorten(grown, np.maximum(now * APPENDED.at(case), np.minimum(now, 1_500.0)))
    zeros = np.flatnonzero(scene.under_op(*FILLS) & scene.is_work & scene.in_steps & ~bench.gone)
    large = zeros[bench.graph.duration[zeros] >= LARGE_FILL_NS]
    bench.remove_work(large)
    plain_copy = (scene.op_name == "aten::copy_") & ~scene.under_op(*MAKES_COPIES)
    into = np.flatnonzero(plain_copy & scene.in_steps & ~bench.gone)
    into = into[scene.work_text("copy_kind")[into] != "HtoD"]
    if len(large) and case != PESSIMISTIC:
        bench.remove_work(into)
    return len(calls) + len(grown) + len(large)


@intervention(
    "drop_copies",
    13,
    "Clones and contiguous copies on the device that nothing needs are left out.",
    "What reads the copy can read the original: products take either layout, and nobody writes to it.",
    "The worst case keeps half of them.",
)
def drop_copies(bench: Bench, case: int) -> int:
    """No kernels of clone and contiguous."""
    scene = bench.scene
    usable = scene.in_steps & ~bench.gone & scene.is_work
    copies = np.flatnonzero(scene.under_op("aten::clone", "aten::contiguous") & usable)
    copies = copies[~np.isin(scene.work_text("copy_kind")[copies], ["HtoD", "DtoH"])]
    bench.remove_work(copies[::2] if case == PESSIMISTIC else copies)
    return len(copies)
