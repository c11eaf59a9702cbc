"""What fixes of copies have in common: which copies there are, and what takes their place."""

from __future__ import annotations

import numpy as np

from warpline.replay.bench import Bench
from warpline.replay.model import Int64s
from warpline.replay.scene import Scene

SMALL_COPY_BYTES = 64 << 10
LAUNCHED_OP_NS = 12_000.0
"""CPU time of an op with one launch: 8.5 to 10.4 µs on an H200's host, and a little of Python."""


def copies_of(scene: Scene, direction: str, bench: Bench) -> Int64s:
    """Copies within steps that are still there, in one direction."""
    mine = (scene.kind == "memcpy") & (scene.work_text("copy_kind") == direction) & scene.in_steps & ~bench.gone
    return np.flatnonzero(mine)


def device_bytes_per_ns(scene: Scene, case: int) -> float:
    """At which kernels pass over device memory."""
    roof = scene.floors.roof
    memory = roof.bandwidth("dram") if roof else None
    return (memory.value / 1e9 if memory else 500.0) * (0.9, 0.7, 0.4)[case]
