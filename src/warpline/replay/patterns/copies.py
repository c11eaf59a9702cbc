"""Shared by the fixes of copies: which copies there are, and what replaces them."""

from __future__ import annotations

import numpy as np

from warpline.replay.costs.cost import Cost
from warpline.replay.graph.model import CALL, LAUNCH, STREAM
from warpline.replay.scene import Scene
from warpline.replay.workbench import Workbench
from warpline.trace.columns import NONE, Int64s

SMALL_COPY_BYTES = 64 << 10
FEW_NUMBERS_BYTES = 256
"""A smaller copy to the device holds a few numbers that the device could fill in itself: no batch to pin."""
MIN_COPIES = 8
"""Fewer copies in a row are not worth gathering."""
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
    """Waits that belong to these copies: `to` and `cpu` synchronise in the same op after a blocking copy. Without ops,
    it is the thread's next call."""
    ops = np.unique(scene.op_of_call[calls])
    waits = np.flatnonzero(scene.stream_waits & (scene.op_of_call != NONE))
    inside = waits[np.isin(scene.op_of_call[waits], ops[ops != NONE])]
    return np.union1d(inside, _next_waits(scene, calls[scene.op_of_call[calls] == NONE]))


def _next_waits(scene: Scene, calls: Int64s) -> Int64s:
    """The waits among the calls that come next on the threads of these calls."""
    graph = scene.graph
    in_order = np.flatnonzero(graph.kind == CALL)
    in_order = in_order[np.lexsort((graph.measured_start[in_order], graph.lane[in_order]))]
    before, after = in_order[:-1], in_order[1:]
    follows = (graph.lane[before] == graph.lane[after]) & np.isin(before, calls) & scene.stream_waits[after]
    found: Int64s = after[follows]
    return found


def in_a_row(scene: Scene, copies: Int64s) -> list[Int64s]:
    """Runs of two or more consecutive copies on one stream, within a step."""
    chosen = np.zeros(len(scene.graph), bool)
    chosen[copies] = True
    runs: list[Int64s] = []
    for lane in np.unique(scene.graph.lane[copies]).tolist():
        nodes = scene.work_of_lane[lane]
        group = np.cumsum(~chosen[nodes] | (np.diff(scene.step[nodes], prepend=scene.step[nodes[:1]]) != 0))
        mine, keys = nodes[chosen[nodes]], group[chosen[nodes]]
        runs += [run for run in np.split(mine, np.flatnonzero(np.diff(keys)) + 1) if len(run) > 1]
    return runs
