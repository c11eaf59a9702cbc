"""Fixes of copies between host and device, and of the input pipeline."""

from __future__ import annotations

import numpy as np

from warpline.replay.costs import constants
from warpline.replay.graph.model import LAUNCH, SEGMENT, STREAM
from warpline.replay.interventions.loading import hand_over
from warpline.replay.interventions.registry import OPTIMISTIC, PESSIMISTIC, intervention
from warpline.replay.patterns.copies import (
    LAUNCHED_OP_NS,
    SMALL_COPY_BYTES,
    copies_of,
    device_bytes_per_ns,
    with_warm_caches,
)
from warpline.replay.patterns.gathering import gathered_after
from warpline.replay.scene import Scene
from warpline.replay.workbench import DISPATCH_NS, NOTHING, Workbench
from warpline.trace.columns import NONE, Int64s

SMALL_PINNED_BYTES = 256 << 10
"""From pinned memory such a copy takes 5 µs, and its op 8 to 9: it is the calls that cost."""
FEW_NUMBERS_BYTES = 256
"""A smaller copy to the device is made of numbers that the device could fill in itself: nothing to pin."""
CUTS = ("aten::unbind", "aten::split", "aten::split_with_sizes", "aten::tensor_split", "aten::chunk")
"""Ops that cut a tensor into pieces; iterating over a tensor is the first of them."""


@intervention(
    "pin_memory",
    20,
    "Batches are copied from pinned memory without blocking the CPU (pin_memory=True, non_blocking=True).",
    "Copies from or to pageable memory run at the speed of pinned ones; a few numbers for the device are left as they "
    "are, and of those to the host, only large ones change.",
    "Batches are made in pinned memory by somebody else (a loader's worker), and results stay in it.",
    "A copy of 8 MB or more no longer goes through the CPU's caches: its next launches take half to two thirds.",
    "The worst case still blocks until the copy is done.",
)
def pin_memory(bench: Workbench, case: int) -> int:
    """Faster copies, and calls that return at once."""
    scene = bench.scene
    up, down = copies_of(scene, "HtoD", bench), copies_of(scene, "DtoH", bench)
    up = up[(scene.work_text("source_memory")[up] == "Pageable") & (scene.bytes[up] > FEW_NUMBERS_BYTES)]
    down = down[(scene.work_text("target_memory")[down] == "Pageable") & (scene.bytes[down] > SMALL_COPY_BYTES)]
    copies = np.union1d(up, down)
    if not len(copies):
        return 0
    size = scene.bytes[copies].astype(np.float64)
    new = constants.PINNED_COPY_NS.at(case) + size / constants.PINNED_BYTES_PER_NS.at(case)
    bench.shorten(copies, new, scene.floor_ns()[copies])
    _unblock(bench, copies, case, keep_waiting=case == PESSIMISTIC)
    with_warm_caches(bench, copies)
    return len(copies)


def _unblock(bench: Workbench, copies: Int64s, case: int, *, keep_waiting: bool) -> None:
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


@intervention(
    "prefetch",
    25,
    "Data is loaded and copied in the background while the device works (workers, a copy stream).",
    "Loading is found by ranges and frames of a DataLoader, by sleeps and file reads, and by what the CPU does before "
    "a copy to the device.",
    "A step still takes at least as long as its loading divided among the workers: 16, 7, or in the worst case 2; each "
    "takes 1.6 times as long for a batch as the loop did.",
    "The loop takes every tensor of a batch from a worker: 0.65 ms each, or 0.05 ms where a thread pins memory.",
    "Copies of batches run beside kernels; where loading takes longer than copying, or from pageable memory, only in "
    "the best case.",
)
def prefetch(bench: Workbench, case: int) -> int:
    """Input segments shrink, and bound the step from below; batch copies get their own stream."""
    scene = bench.scene
    loading, copies = hand_over(bench, case), copies_of(scene, "HtoD", bench)
    if case != OPTIMISTIC:
        # A stream of its own does not help a copy that holds its thread.
        pinned = copies[scene.work_text("source_memory")[copies] != "Pageable"]
        copies = NOTHING if loading > bench.graph.duration[copies].sum() / scene.step_count else pinned
    if len(copies):
        if case != PESSIMISTIC:
            _unblock(bench, copies, case, keep_waiting=False)
        bench.detach(copies, keep_causes=False)
    return int((scene.input_share > 0).sum()) + len(copies)


@intervention(
    "coalesce_copies",
    22,
    "Small copies in a row, with nothing launched in between, become one.",
    "The host gathers pieces of pageable memory into one buffer, at the rate of a copy; pinned ones lie side by side, "
    "or could if whoever put them there did so, and in the worst case are gathered too.",
    "What the loop does for more than 40 µs between two copies is its own, and stays.",
    "The device gathers nothing after them; where they went to places of a tensor, one kernel puts them there.",
    "What cut the pieces out of one tensor (unbind, split) goes with the loop.",
)
def coalesce_copies(bench: Workbench, case: int) -> int:
    """Of each run of small copies of one direction, the first carries all bytes."""
    scene, changed, removed = bench.scene, 0, [NOTHING]
    for direction in ("HtoD", "DtoH", "DtoD"):
        copies = copies_of(scene, direction, bench)
        pinned = scene.work_text("source_memory")[copies] == "Pinned"
        copies = copies[scene.bytes[copies] <= np.where(pinned, SMALL_PINNED_BYTES, SMALL_COPY_BYTES)]
        for mine in _in_a_row(scene, copies):
            size = float(scene.bytes[mine].sum())
            removed.append(mine[1:])
            calls = scene.call_of_work[mine[1:]]
            waits = same_op_waits(scene, calls[calls != NONE])
            bench.remove_calls(np.setdiff1d(waits, calls))
            _remove_loop(bench, mine)
            time = constants.PINNED_COPY_NS.at(case) + size / constants.PINNED_BYTES_PER_NS.at(case)
            bench.graph.duration[mine[0]] = max(time, float(bench.graph.duration[mine[0]]))
            if scene.call_of_work[mine[0]] != NONE and direction == "HtoD":
                removed.append(_as_one_upload(bench, mine, size, case))
            changed += len(mine) - 1
    bench.remove_work(np.concatenate(removed))
    return changed


def _as_one_upload(bench: Workbench, copies: Int64s, size: float, case: int) -> Int64s:
    """What else one copy to the device costs on both sides; the work that gathered the pieces, which goes."""
    scene, first = bench.scene, int(copies[0])
    call = int(scene.call_of_work[first])
    if scene.work_text("source_memory")[first] != "Pinned" or case == PESSIMISTIC:
        bench.graph.duration[call] += size / constants.HOST_BYTES_PER_NS.at(case)
    if scene.root_op[first] != NONE and scene.trace.ops["name"][int(scene.root_op[first])] == "aten::copy_":
        bench.graph.duration[call] += LAUNCHED_OP_NS
        bench.graph.duration[first] += constants.PINNED_COPY_NS.at(case) + 2 * size / device_bytes_per_ns(scene, case)
    bench.remove_ops(_cut_before(scene, call))
    stream = scene.work[scene.graph.lane[scene.work] == scene.graph.lane[first]]
    return gathered_after(scene, stream, int(copies[-1]))


def _cut_before(scene: Scene, call: int) -> Int64s:
    """Ops that cut a tensor into pieces between the launch before a call and the call itself, on its thread."""
    begin = int(scene.graph.measured_start[call])
    launched = scene.launch_moment[scene.work]
    since = int(launched[launched < begin].max(initial=0))
    starts, ends, threads = scene.op_spans
    near = (starts > since) & (ends <= begin) & (threads == scene.graph.lane[call])
    near &= scene.roots[:-1] == np.arange(len(starts))
    names = scene.trace.ops["name"]
    return np.array([row for row in np.flatnonzero(near).tolist() if str(names[row]) in CUTS], np.int64)


def _in_a_row(scene: Scene, copies: Int64s) -> list[Int64s]:
    """Runs of at least two of the copies that follow each other on their stream, within a step."""
    chosen = np.zeros(len(scene.graph), bool)
    chosen[copies] = True
    runs: list[Int64s] = []
    for lane in np.unique(scene.graph.lane[copies]):
        nodes = scene.work[scene.graph.lane[scene.work] == lane]
        group = np.cumsum(~chosen[nodes] | (np.diff(scene.step[nodes], prepend=scene.step[nodes[:1]]) != 0))
        mine, keys = nodes[chosen[nodes]], group[chosen[nodes]]
        runs += [run for run in np.split(mine, np.flatnonzero(np.diff(keys)) + 1) if len(run) > 1]
    return runs


def _remove_loop(bench: Workbench, copies: Int64s) -> None:
    """The CPU time between the first and the last of the copies, if nothing but them was launched in between."""
    scene = bench.scene
    first, last = scene.call_of_work[copies[0]], scene.call_of_work[copies[-1]]
    if NONE in (first, last) or scene.graph.lane[first] != scene.graph.lane[last]:
        return
    begin, end = int(scene.graph.measured_end[first]), int(scene.graph.measured_end[last])
    moments = scene.launch_moment[scene.work]
    between = scene.work[(moments >= begin) & (moments < end)]
    if len(np.setdiff1d(between, copies)) == 0:
        # A loop that makes its pieces still has to make them.
        own = np.where(bench.graph.kind == SEGMENT, np.maximum(bench.graph.duration - DISPATCH_NS, 0.0), 0.0)
        bench.remove_cpu(int(scene.graph.lane[first]), begin, end)
        inside = (bench.graph.measured_start >= begin) & (bench.graph.measured_start < end) & ~scene.is_work
        inside &= scene.graph.lane == scene.graph.lane[first]
        bench.graph.duration[inside] = own[inside]
