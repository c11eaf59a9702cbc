"""What a program does once to make its steps ready: captures of graphs, compilation, plans, trials.

All of it leaves CPU time and GPU work in a trace, and none of it is there when the step is warm.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl

from warpline.intervals import Spans, union
from warpline.replay.graph.model import CALL, RELEASE, SEGMENT
from warpline.replay.scene import Scene
from warpline.replay.workbench import Workbench
from warpline.trace import api_names
from warpline.trace.columns import NONE, Bools, Int64s, integers
from warpline.trace.names import matches, named

Stretch = tuple[int, int, int]
"""A thread (row of `threads`), and from when to when."""
NEVER = np.iinfo(np.int64).max
PAUSE_NS = 40_000.0
"""So much CPU time between two launches of one op is more than their dispatch."""
MOST_PAUSES = 3
"""An op that pauses or waits more often than this between its launches makes a plan on the device, or tries kernels:
what it launches before the last pause is not what it was called for. Two plans in one op (backwards) are fewer."""
MOST_BETWEEN = 8
"""Ops between the last rehearsal of a captured function and its capture, which sets seeds and the like."""


def without_captures(bench: Workbench) -> list[Stretch]:
    """Takes captures of graphs out of the steps, with the runs of the same ops that lead to them."""
    found = [span for thread in _capturing_threads(bench.scene) for span in _captures(bench.scene, thread)]
    _remove(bench, found)
    return found


def without_compiling(bench: Workbench) -> list[Stretch]:
    """Takes the ops of torch.compile's compiler out, up to the compiled code, with the kernels that it tries."""
    scene, found = bench.scene, []
    for (thread,), ops in scene.trace.ops.filter(pl.col("thread").is_not_null()).group_by("thread"):
        compiling = ops.filter(named(api_names.COMPILING_OPS))
        if not len(compiling):
            continue
        roots = ops.filter(pl.col("depth") == 0, ~named(api_names.COMPILING_OPS)).sort("start_ns")
        starts = np.append(integers(roots["start_ns"]), NEVER)
        runs = np.append(matches(roots["name"], api_names.COMPILED_REGION).to_numpy(), False)
        ends = integers(compiling["end_ns"])
        following = np.searchsorted(starts, ends)
        reached = np.where(runs[following], starts[following], ends)
        found += [(int(thread), *span) for span in _in_steps(scene, union(integers(compiling["start_ns"]), reached))]
    _remove(bench, found)
    return found


def without_tables(bench: Workbench, planning: Bools) -> None:
    """Takes out what ops that plan (rows of `ops`, outermost) copied to the device and cleared there by the way.

    No call of the copies of a plan's tables is recorded; what an op was called for has one.
    """
    scene = bench.scene
    silent = scene.work[(scene.call_of_work[scene.work] == NONE) & (scene.kind[scene.work] != "kernel")]
    silent = silent[planning[scene.root_op[silent]] & ~bench.gone[silent]]
    bench.remove_work(silent, dispatch=False)


def without_trials(bench: Workbench) -> list[Stretch]:
    """Of ops that pause again and again between their launches, only what they launch after the last pause stays.

    Not of those that launch the same elsewhere without pausing: they try nothing, the CPU was slow.
    """
    scene = bench.scene
    work = scene.work[scene.in_steps[scene.work] & ~bench.gone[scene.work]]
    work = work[(scene.op[work] != NONE) & (scene.call_of_work[work] != NONE)]
    trials = [(name, _until_last_pause(bench, calls)) for name, calls in _launches_of_ops(scene, work)]
    usual = {name for name, trial in trials if trial is None}
    found = [trial for name, trial in trials if trial is not None and name not in usual]
    _remove(bench, found)
    return found


def _launches_of_ops(scene: Scene, work: Int64s) -> list[tuple[tuple[str, ...], Int64s]]:
    """For each op that launches often enough to have paused, the names of its work, and its calls in order."""
    if not len(work):
        return []
    order = work[np.lexsort((scene.call_of_work[work], scene.op[work]))]
    first = np.unique(scene.op[order], return_index=True)[1]
    ops = [own for own in np.split(order, first[1:]) if len(own) > MOST_PAUSES]
    return [(tuple(scene.name[own]), np.unique(scene.call_of_work[own])) for own in ops]


def _until_last_pause(bench: Workbench, calls: Int64s) -> Stretch | None:
    """From an op's first call to its launch, or wait, in the last of too many pauses; None where it hardly pauses."""
    graph, pauses, end = bench.graph, 0, 0
    lane = int(graph.lane[calls[0]])
    for before, call in pairwise(calls.tolist()):
        between = np.arange(before + 1, call)
        between = between[graph.lane[between] == lane]
        thinking = float(graph.duration[between[graph.kind[between] == SEGMENT]].sum())
        waits = between[graph.kind[between] == RELEASE]
        if thinking > PAUSE_NS or len(waits):
            pauses, end = pauses + 1, int(graph.measured_end[waits].max(initial=graph.measured_end[before])) + 1
    if pauses <= MOST_PAUSES:
        return None
    scene = bench.scene
    first = np.flatnonzero((graph.kind == CALL) & (scene.op_of_call == scene.op_of_call[calls[0]]))[0]
    return lane, int(graph.measured_start[first]), end


def _remove(bench: Workbench, spans: list[Stretch]) -> None:
    """Takes out what threads did in these times (thread, begin, end), and the work that they launched in them."""
    if not spans:
        return
    scene, graph = bench.scene, bench.graph
    threads, starts, ends = (np.array(column, np.int64) for column in zip(*spans, strict=True))
    graph.duration *= 1 - scene.covered(starts, ends, threads)
    launched_by = np.append(integers(scene.trace.api["thread"]), NONE)[
        np.append(integers(scene.trace.gpu["api_id"]), NONE)[np.where(scene.is_work, graph.row, NONE)]
    ]
    lane = np.where(scene.is_work, launched_by, graph.lane)
    inside: Bools = np.zeros(len(graph), bool)
    for thread, start, end in spans:
        inside |= (lane == thread) & (scene.launch_moment >= start) & (scene.launch_moment < end)
    bench.remove_work(np.flatnonzero(inside & scene.is_work & ~bench.gone), dispatch=False)
    calls = np.flatnonzero(inside & np.isin(graph.kind, [CALL, RELEASE]))
    bench.graph.duration[calls] = 0.0
    bench.stop_waiting(calls[graph.kind[calls] == CALL])


def _in_steps(scene: Scene, spans: Spans) -> list[tuple[int, int]]:
    """Those that begin within the steps in view."""
    steps = scene.trace.steps_in_view
    pairs = list(zip(spans.starts.tolist(), spans.ends.tolist(), strict=True))
    if not len(steps):
        return pairs
    first, last = int(integers(steps["start_ns"])[0]), int(integers(steps["end_ns"])[-1])
    return [(start, end) for start, end in pairs if first <= start < last]


def _capturing_threads(scene: Scene) -> list[int]:
    begins = scene.trace.api.filter(named(api_names.BEGIN_CAPTURE))["thread"].drop_nulls()
    return sorted(begins.unique().to_list())


def _captures(scene: Scene, thread: int) -> list[Stretch]:
    """From the first run that warms a captured function up (else from the wait before the capture) to its graph."""
    calls = scene.trace.api.filter(pl.col("thread") == thread).sort("start_ns")
    starts, ends = integers(calls["start_ns"]), integers(calls["end_ns"])
    begin, end, making, waiting, working = (
        matches(calls["name"], pattern).to_numpy()
        for pattern in (
            api_names.BEGIN_CAPTURE,
            api_names.END_CAPTURE,
            api_names.GRAPH_MAKING,
            api_names.DEVICE_WAIT,
            f"{api_names.LAUNCH}|{api_names.COPY}",
        )
    )
    captures, free = [], 0
    for first in np.flatnonzero(begin).tolist():
        closing = np.flatnonzero(end[first:])
        last = first + int(closing[0]) if len(closing) else first
        while last + 1 < len(calls) and making[last + 1]:
            last += 1
        before = first
        for call in range(first - 1, -1, -1):
            if working[call] or starts[call] < free:
                break
            before = call if waiting[call] else before
        start = min(int(starts[before]), _first_rehearsal(scene, thread, free, int(starts[first]), int(ends[last])))
        captures.append((start, int(ends[last])))
        free = int(ends[last])
    return [(thread, *span) for span in _in_steps(scene, Spans(*np.array(captures, np.int64).reshape(-1, 2).T))]


def _first_rehearsal(scene: Scene, thread: int, free: int, begin: int, end: int) -> int:
    """When the runs began that repeat, right before the capture and in the same step, the ops that it captures."""
    steps = integers(scene.trace.steps_in_view["start_ns"])
    lower = max(free, int(steps[steps <= begin].max(initial=free)))
    ops = scene.trace.ops.filter(pl.col("thread") == thread, pl.col("depth") == 0).sort("start_ns")
    starts, names = integers(ops["start_ns"]), ops["name"].cast(pl.String).to_list()
    first, last = np.searchsorted(starts, [begin, end]).tolist()
    captured = names[first:last]
    runs = [spot for spot in range(first, first - MOST_BETWEEN - 1, -1) if _ends_with(names, spot, captured)]
    start = begin
    spot = runs[0] if runs else 0
    while _ends_with(names, spot, captured) and starts[spot - len(captured)] >= lower:
        spot -= len(captured)
        start = int(starts[spot])
    return start


def _ends_with(names: list[str], spot: int, wanted: list[str]) -> bool:
    return bool(wanted) and spot >= len(wanted) and names[spot - len(wanted) : spot] == wanted
