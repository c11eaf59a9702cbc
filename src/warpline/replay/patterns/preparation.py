"""What a program does once to make its steps ready: captures of graphs, compilation, plans, trials.

All of it leaves CPU time and GPU work in a trace, and none of it is there when the step is warm.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from warpline.analyses.steps import covered_before
from warpline.intervals import Spans, union
from warpline.replay.graph.model import CALL, RELEASE
from warpline.replay.scene import Scene
from warpline.replay.workbench import Workbench
from warpline.trace import api_names
from warpline.trace.columns import NONE, Bools, Int64s, integers
from warpline.trace.names import matches, named

Stretch = tuple[int, int, int]
"""A thread (row of `threads`), and from when to when."""
NEVER = np.iinfo(np.int64).max
MOST_WAITS_WITHIN = 3
"""An op that waits for the device more often than this between its launches times kernels that it tries; ops that need
a count from the device, such as nonzero and unique, wait once or twice."""
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


def without_preparing(bench: Workbench, case: int) -> int:
    """Takes out the time in which launching threads are known to load, compile or initialise, and says in how many
    nodes; what only seems long stays."""
    scene, graph = bench.scene, bench.graph
    before = graph.duration.copy()
    for thread in scene.host_time.launching:
        # Where a thread does nothing while another one prepares, it waits for that one.
        spans = scene.host_time.explained(thread)["cold_start"]
        if not len(spans):
            continue
        graph.duration *= 1 - scene.covered(spans.starts, spans.ends, np.full(len(spans), thread))
        calls = np.flatnonzero((graph.kind == CALL) & (graph.lane == thread))
        begin, end = graph.measured_start[calls], graph.measured_end[calls]
        inside = (covered_before(spans, end) - covered_before(spans, begin)) / np.maximum(end - begin, 1)
        bench.shorten(calls, np.maximum(graph.duration[calls] * (1 - inside), scene.host.call.at(case)))
    return int((graph.duration < before).sum())


def without_tables(bench: Workbench, planning: Bools) -> None:
    """Takes out what ops that plan (rows of `ops`, outermost) copied to the device and cleared there by the way.

    No call of the copies of a plan's tables is recorded; what an op was called for has one.
    """
    scene = bench.scene
    silent = scene.work[(scene.call_of_work[scene.work] == NONE) & (scene.kind[scene.work] != "kernel")]
    silent = silent[planning[scene.root_op[silent]] & ~bench.gone[silent]]
    bench.remove_work(silent, dispatch=False)


def without_trials(bench: Workbench) -> list[Stretch]:
    """Of ops that wait again and again between their launches, only what they launch after the last wait stays."""
    scene = bench.scene
    work = scene.work[scene.in_steps[scene.work] & ~bench.gone[scene.work]]
    work = work[(scene.op[work] != NONE) & (scene.call_of_work[work] != NONE)]
    trials = [_until_last_wait(bench, calls) for calls in _launches_of_ops(scene, work)]
    found = [trial for trial in trials if trial is not None]
    _remove(bench, found)
    return found


def _launches_of_ops(scene: Scene, work: Int64s) -> list[Int64s]:
    """For each op that launches often enough to have tried something, its calls in order."""
    if not len(work):
        return []
    order = work[np.lexsort((scene.call_of_work[work], scene.op[work]))]
    first = np.unique(scene.op[order], return_index=True)[1]
    return [np.unique(scene.call_of_work[own]) for own in np.split(order, first[1:]) if len(own) > MOST_WAITS_WITHIN]


def _until_last_wait(bench: Workbench, calls: Int64s) -> Stretch | None:
    """From an op's first call to the last wait between its launches; None where it hardly waits there."""
    graph, scene = bench.graph, bench.scene
    lane = int(graph.lane[calls[0]])
    within = np.arange(calls[0], calls[-1])
    waits = within[(graph.kind[within] == RELEASE) & (graph.lane[within] == lane)]
    if len(waits) <= MOST_WAITS_WITHIN:
        return None
    first = np.flatnonzero((graph.kind == CALL) & (scene.op_of_call == scene.op_of_call[calls[0]]))[0]
    return lane, int(graph.measured_start[first]), int(graph.measured_end[waits].max()) + 1


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
