"""What fixes of copies have in common: which copies there are, and what takes their place."""

from __future__ import annotations

import numpy as np

from warpline.replay.costs import constants
from warpline.replay.graph.model import CALL, LAUNCH, SEGMENT, STREAM
from warpline.replay.scene import Scene
from warpline.replay.workbench import Workbench
from warpline.trace.columns import NONE, Int64s

SMALL_COPY_BYTES = 64 << 10
LAUNCHED_OP_NS = 12_000.0
"""CPU time of an op with one launch: 8.5 to 10.4 µs on an H200's host, and a little of Python."""

COLD_BYTES = 8_000_000
"""A copy of so many bytes that the CPU makes itself, as it does for pageable memory, drives code out of its caches."""
COLD_START_NS, COLD_FIRST, COLD_NEXT, COLD_LAUNCHES = 40_000.0, 2.0, 1.5, 6
"""What that costs: the CPU time until the next launch takes 40 µs and twice as long as otherwise (five programs: 70 to
99 µs instead of 8 to 15, and 420 instead of 220), that until the five launches after it 1.5 times as long (ten
programs, 0.8 to 9 times, mostly 1.2 to 2)."""
LONGEST_DISPATCH_NS = 500_000.0
"""CPU time between two launches that is longer than this is no dispatch."""


def copies_of(scene: Scene, direction: str, bench: Workbench) -> Int64s:
    """Copies within steps that are still there, in one direction."""
    mine = (scene.kind == "memcpy") & (scene.work_text("copy_kind") == direction) & scene.in_steps & ~bench.gone
    return np.flatnonzero(mine)


def device_bytes_per_ns(scene: Scene, case: int) -> float:
    """At which kernels pass over device memory."""
    return (scene.floors.memory_bytes_per_ns or 500.0) * (0.9, 0.7, 0.4)[case]


def unblock(bench: Workbench, copies: Int64s, case: int, *, keep_waiting: bool) -> None:
    """The copies' calls cost an asynchronous launch, and wait no longer."""
    scene = bench.scene
    calls = scene.call_of_work[copies]
    calls = calls[calls != NONE]
    if not keep_waiting:
        bench.stop_waiting(calls)
        followers = same_op_waits(scene, calls)
        bench.stop_waiting(followers)
        bench.graph.duration[followers] = 0.0
    cost = constants.ASYNC_COPY_CALL_NS.at(case)
    bench.graph.duration[calls] = np.minimum(bench.graph.duration[calls], cost)
    into = np.isin(bench.graph.edge_to, copies)
    launch, stream = into & (bench.graph.edge_kind == LAUNCH), into & (bench.graph.edge_kind == STREAM)
    bench.graph.lag[launch] = np.minimum(bench.graph.lag[launch], cost)
    bench.graph.lag[stream] = np.minimum(bench.graph.lag[stream], constants.PINNED_COPY_NS.at(case))


def same_op_waits(scene: Scene, calls: Int64s) -> Int64s:
    """Waits that belong to the same ops as these calls: `to` and `cpu` synchronise after a blocking copy."""
    ops = np.unique(scene.op_of_call[calls])
    waits = np.flatnonzero(scene.stream_waits & (scene.op_of_call != NONE))
    return waits[np.isin(scene.op_of_call[waits], ops[ops != NONE])]


def with_warm_caches(bench: Workbench, copies: Int64s) -> None:
    """What the CPU does after these copies takes as long as if they had not gone through its caches."""
    graph, scene = bench.graph, bench.scene
    calls = scene.call_of_work[copies[scene.bytes[copies] >= COLD_BYTES]]
    calls = np.unique(calls[calls != NONE])
    launching = np.zeros(len(graph) + 1, bool)
    launching[scene.call_of_work[scene.work]] = True
    for lane in np.unique(graph.lane[calls]):
        nodes = np.flatnonzero((graph.lane == lane) & np.isin(graph.kind, [SEGMENT, CALL]))
        nodes = nodes[np.argsort(graph.measured_start[nodes], kind="stable")]
        spots = np.flatnonzero(np.isin(nodes, calls))
        for spot, beyond in zip(spots, np.append(spots[1:], len(nodes)), strict=True):
            after = nodes[spot + 1 : beyond]
            before = np.cumsum(launching[after]) - launching[after]
            _warm(bench, after[before == 0], after[(before > 0) & (before < COLD_LAUNCHES)])


def _warm(bench: Workbench, first: Int64s, following: Int64s) -> None:
    duration = bench.graph.duration
    if len(first):
        longest = first[duration[first].argmax()]
        duration[longest] = max(duration[longest] - COLD_START_NS, 0.0)
    for nodes, times in ((first, COLD_FIRST), (following, COLD_NEXT)):
        duration[nodes] /= np.where(duration[nodes] < LONGEST_DISPATCH_NS, times, 1.0)
