"""Fixes of waits: the CPU goes on without waiting for the GPU."""

from __future__ import annotations

import re

import numpy as np

from warpline import api_names
from warpline.replay.bench import Bench
from warpline.replay.interventions.registry import EXPECTED, PESSIMISTIC, intervention
from warpline.replay.model import RELEASE, SYNC, Int64s
from warpline.replay.scene import Scene
from warpline.trace.nesting import NONE

COUNTING = ("aten::nonzero", "aten::masked_select", "aten::_unique2", "aten::equal")
"""Ops whose result has a size (or value) that only the device knows: without the wait they are not needed either."""
SMALL_RESULT_BYTES = 4096
"""A copy to the host up to this size is a number that somebody looked at (`item`, `tolist`, a mask's count)."""


def awaited_calls(scene: Scene) -> Int64s:
    """Calls within steps that wait for the device without moving data: explicit ones, and copies of small results."""
    graph = scene.graph
    release = np.flatnonzero((graph.kind == RELEASE) & scene.in_steps)
    names = scene.call_name
    pattern = re.compile("|".join((api_names.STREAM_WAIT, api_names.EVENT_WAIT, api_names.DEVICE_WAIT)))
    explicit = {name for name in set(names[release].tolist()) if pattern.search(name)}
    rows = set(graph.row[release[np.isin(names[release], list(explicit))]].tolist())
    small = scene.is_work & (scene.kind == "memcpy") & (scene.bytes <= SMALL_RESULT_BYTES)
    small &= np.isin(scene.work_text("copy_kind"), ["DtoH"]) & scene.in_steps
    held = graph.edge_kind == SYNC
    own = held & small[graph.edge_from]
    calls = scene.call_of_work[graph.edge_from[own]]
    rows |= set(graph.row[calls[calls != NONE]].tolist())
    return np.flatnonzero((graph.kind != RELEASE) & ~scene.is_work & np.isin(graph.row, list(rows)))


@intervention(
    "remove_sync",
    30,
    "Synchronising calls and copies of single numbers inside the step no longer hold the CPU.",
    "The program does not need the result at once: it is kept on the device, or read later.",
    "Ops that only find out how many elements there are (nonzero) go with their waits.",
    "The worst case keeps the last wait of each step, as when a loss is logged.",
)
def remove_sync(bench: Bench, case: int) -> int:
    """Drops the waits: explicit calls and small copies disappear."""
    scene = bench.scene
    calls = awaited_calls(scene)
    if case == PESSIMISTIC and len(calls):
        steps = scene.step[calls]
        last = {int(step): int(call) for step, call in zip(steps, calls, strict=True)}
        calls = np.setdiff1d(calls, np.array(list(last.values()), np.int64))
    if not len(calls) and case == EXPECTED:
        return 0
    bench.stop_waiting(calls)
    bench.graph.duration[calls] = 0.0
    copies = scene.work[np.isin(scene.call_of_work[scene.work], calls)]
    bench.remove_work(copies)
    if case != PESSIMISTIC:
        bench.remove_work(np.flatnonzero(scene.under_op(*COUNTING) & scene.in_steps & scene.is_work & ~bench.gone))
    return len(calls)
