"""Calls to the CUDA allocator inside steps."""

from __future__ import annotations

import numpy as np

from warpline.replay.scene import Scene
from warpline.replay.workbench import Workbench
from warpline.trace.columns import Int64s


def calls_in_steps(scene: Scene, pattern: str) -> Int64s:
    """Calls within steps whose names match."""
    return np.flatnonzero(scene.calls_like(pattern) & scene.in_steps)


def drop_calls(bench: Workbench, calls: Int64s) -> None:
    """Removes the calls; the host time before them stays."""
    bench.graph.duration[calls] = 0.0
    bench.stop_waiting(calls)
