"""Calls to the CUDA allocator inside steps."""

from __future__ import annotations

import numpy as np

from warpline.analyses.steps import covered_before
from warpline.replay.scene import Scene
from warpline.replay.workbench import Workbench
from warpline.trace.columns import Bools, Int64s


def calls_in_steps(scene: Scene, pattern: str) -> Int64s:
    """Calls within steps whose names match, without those in which a library is initialised."""
    return np.flatnonzero(scene.calls_like(pattern) & scene.in_steps & ~scene.once(_initialising))


def _initialising(scene: Scene) -> Bools:
    """Nodes that begin in time known as cold start."""
    graph, found = scene.graph, np.zeros(len(scene.graph), bool)
    for thread, activity in scene.host_time.threads.items():
        spans, nodes = activity.labels["cold_start"], np.flatnonzero(graph.lane == thread)
        if len(spans):
            begin = graph.measured_start[nodes]
            found[nodes] = covered_before(spans, begin + 1) > covered_before(spans, begin)
    return found & ~scene.is_work


def drop_calls(bench: Workbench, calls: Int64s) -> None:
    """Removes the calls; the host time before them stays."""
    bench.graph.duration[calls] = 0.0
    bench.stop_waiting(calls)
