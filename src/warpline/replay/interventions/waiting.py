"""Fixes of waits: the CPU goes on without waiting for the GPU."""

from __future__ import annotations

import re

import numpy as np

from warpline.replay.graph.model import RELEASE, SYNC
from warpline.replay.interventions.registry import EXPECTED, PESSIMISTIC, intervention
from warpline.replay.patterns.literals import made_again, take_out_made
from warpline.replay.patterns.lookups import looked_up, take_out_inner_ops
from warpline.replay.scene import Scene
from warpline.replay.workbench import Workbench
from warpline.trace import api_names
from warpline.trace.columns import NONE, Int64s, integers

COUNTING = (
    "aten::nonzero",
    "aten::masked_select",
    "aten::equal",
    "aten::_unique",
    "aten::_unique2",
    "aten::unique_dim",
    "aten::unique_consecutive",
    "aten::unique_dim_consecutive",
)
"""Ops whose result has a size (or value) that only the device knows: without the wait they are not needed either."""
SMALL_RESULT_BYTES = 64 << 10
"""A copy to the host up to this size is something that somebody looked at (`item`, `tolist`, a mask's count): it takes
about as long as a copy of one number (32 KiB 2.0 µs, 8 bytes 1.5 µs on an H200), so the wait is for the work before."""
LARGEST_RESULT_BYTES = 1 << 20
SOON_DONE = 0.1
"""A larger one, up to the first size, is no transfer either where the copy takes less than this share of its call."""


def awaited_calls(scene: Scene) -> Int64s:
    """Calls within steps that wait for the device without moving data: explicit ones, and copies of results that are
    small, or soon done once the work before them is."""
    graph = scene.graph
    release = np.flatnonzero((graph.kind == RELEASE) & scene.in_steps)
    names = scene.call_name
    pattern = re.compile("|".join((api_names.STREAM_WAIT, api_names.EVENT_WAIT, api_names.DEVICE_WAIT)))
    explicit = {name for name in set(names[release].tolist()) if pattern.search(name)}
    rows = set(graph.row[release[np.isin(names[release], list(explicit))]].tolist())
    calls = _calls_of_results(scene)
    rows |= set(graph.row[calls].tolist())
    return np.flatnonzero((graph.kind != RELEASE) & ~scene.is_work & np.isin(graph.row, list(rows)))


def _calls_of_results(scene: Scene) -> Int64s:
    """Calls that copy a result to the host and wait, hardly for the copy itself."""
    graph = scene.graph
    results = (scene.kind == "memcpy") & (scene.work_text("copy_kind") == "DtoH") & scene.in_steps
    copies = graph.edge_from[(graph.edge_kind == SYNC) & results[graph.edge_from]]
    calls = scene.call_of_work[copies]
    copies, calls = copies[calls != NONE], calls[calls != NONE]
    held = (integers(scene.trace.api["end_ns"]) - integers(scene.trace.api["start_ns"]))[graph.row[calls]]
    soon_done = (graph.measured_end - graph.measured_start)[copies] < SOON_DONE * held
    size = scene.bytes[copies]
    result: Int64s = calls[(size <= SMALL_RESULT_BYTES) | ((size <= LARGEST_RESULT_BYTES) & soon_done)]
    return result


@intervention(
    "remove_sync",
    30,
    "Synchronising calls and copies of small results inside the step no longer hold the CPU.",
    "The program does not need the result at once: it is kept on the device, or read later.",
    "Ops that only find out how many elements there are (nonzero), the largest or smallest of whole numbers, or "
    "whether something is so (all, eq), go with the wait for the number; so does arithmetic on that number. The search "
    "for an accident (isnan, isfinite) stays.",
    "Tensors made from Python's numbers several times a step are made once; the first of each size stays.",
    "The worst case keeps the last wait of each step, as when a loss is logged, and all ops.",
)
def remove_sync(bench: Workbench, case: int) -> int:
    """Drops the waits: explicit calls and small copies disappear, with what was only there for them."""
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
    if case == PESSIMISTIC:
        bench.remove_work(copies)
        return len(calls)
    take_out_made(bench, made_again(scene))
    counting = np.flatnonzero(scene.under_op(*COUNTING) & scene.in_steps & scene.is_work & ~bench.gone)
    removed = np.unique(np.concatenate([copies, counting, looked_up(scene, copies)]))
    bench.remove_work(removed)
    take_out_inner_ops(bench, removed)
    return len(calls)
