"""Fixes of memory: no calls to the driver's allocator inside the step, no growing by copying."""

from __future__ import annotations

import re

import numpy as np

from warpline.kernels import KernelIdentity
from warpline.replay.bench import Bench
from warpline.replay.interventions.registry import PESSIMISTIC, Range, intervention
from warpline.replay.model import CALL, Int64s
from warpline.replay.scene import Scene
from warpline.trace import api_names

APPENDED = Range(0.02, 0.1, 0.5, "not measured yet: a cautious range")
"""Share of a concatenation that remains when only the new part is written into a buffer."""


def _calls(scene: Scene, pattern: str) -> Int64s:
    names = {name for name in set(scene.call_name.tolist()) if name and re.search(pattern, name)}
    chosen = (scene.graph.kind == CALL) & scene.in_steps & np.isin(scene.call_name, list(names))
    return np.flatnonzero(chosen)


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
    "Allocations inside the step disappear with their frees.",
    "Concatenations that grow a tensor write only the new part.",
)
def preallocate(bench: Bench, case: int) -> int:
    """No allocations, short concatenations."""
    scene = bench.scene
    calls = np.union1d(_calls(scene, api_names.ALLOCATION), _calls(scene, api_names.EMPTY_CACHE_FREE))
    _drop(bench, calls)
    grown = np.flatnonzero(scene.kernels_where(_concatenates) & scene.in_steps & ~bench.gone)
    now = bench.graph.duration[grown]
    bench.shorten(grown, np.maximum(now * APPENDED.at(case), np.minimum(now, 1_500.0)))
    return len(calls) + len(grown)
