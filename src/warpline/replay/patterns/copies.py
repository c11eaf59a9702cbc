"""Shared by the fixes of copies: which copies there are, and what replaces them."""

from __future__ import annotations

import numpy as np

from warpline.replay.costs.cost import Cost
from warpline.replay.graph.model import LAUNCH, STREAM
from warpline.replay.scene import Scene
from warpline.replay.workbench import Workbench
from warpline.trace.columns import NONE, Int64s

SMALL_COPY_BYTES = 64 << 10
PASSING = Cost(1.1, 1.4, 2.5, "not measured yet: a cautious range")
"""Time of one pass over device memory, as a multiple of its bytes at peak bandwidth."""


def copies_of(scene: Scene, direction: str, bench: Workbench) -> Int64s:
    """Remaining copies within steps, in one direction."""
    mine = (scene.kind == "memcpy") & (scene.work_text("copy_kind") == direction) & scene.in_steps & ~bench.gone
    return np.flatnonzero(mine)


def device_byte_ns(scene: Scene, case: int) -> float:
    """Time per byte that kernels read from or write to device memory."""
    return scene.device.some_memory_byte.at(case) * PASSING.at(case)


def unblock(bench: Workbench, copies: Int64s, case: int, *, keep_waiting: bool) -> None:
    """Makes the copies asynchronous: their calls cost a launch and no longer wait."""
    scene = bench.scene
    calls = scene.call_of_work[copies]
    calls = calls[calls != NONE]
    if not keep_waiting:
        bench.stop_waiting(calls)
        followers = same_op_waits(scene, calls)
        bench.stop_waiting(followers)
        bench.graph.duration[followers] = 0.0
    cost = scene.host.copy_call.at(case)
    bench.graph.duration[calls] = np.minimum(bench.graph.duration[calls], cost)
    into = np.isin(bench.graph.edge_to, copies)
    launch, stream = into & (bench.graph.edge_kind == LAUNCH), into & (bench.graph.edge_kind == STREAM)
    bench.graph.lag[launch] = np.minimum(bench.graph.lag[launch], cost)
    bench.graph.lag[stream] = np.minimum(bench.graph.lag[stream], scene.device.smallest_copy.at(case))


def same_op_waits(scene: Scene, calls: Int64s) -> Int64s:
    """Waits that belong to the same ops as these calls: `to` and `cpu` synchronise after a blocking copy."""
    ops = np.unique(scene.op_of_call[calls])
    waits = np.flatnonzero(scene.stream_waits & (scene.op_of_call != NONE))
    return waits[np.isin(scene.op_of_call[waits], ops[ops != NONE])]
