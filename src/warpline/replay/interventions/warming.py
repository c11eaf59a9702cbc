"""Cold starts: what is loaded, compiled or tuned in the first steps and never again."""

from __future__ import annotations

import re

import numpy as np
import polars as pl

from warpline.intervals import union
from warpline.replay.costs import constants
from warpline.replay.graph.model import CALL, SEGMENT, WORK
from warpline.replay.interventions.registry import Range, intervention
from warpline.replay.patterns.calm_steps import calm_steps, settle, step_that_follows, untouched
from warpline.replay.patterns.preparation import (
    NEVER,
    Stretch,
    without_captures,
    without_compiling,
    without_tables,
    without_trials,
)
from warpline.replay.replay import are_uneven
from warpline.replay.scene import Scene
from warpline.replay.simulate import simulate
from warpline.replay.workbench import Workbench
from warpline.trace import api_names
from warpline.trace.columns import NONE, Bools, Floats, Int64s, integers
from warpline.trace.names import matches, named
from warpline.trace.steps import on_device

LOADING = (
    r"^(cu|hip)(Module|Library)(Load|Get|Unload)|^cudaFuncGet|Occupancy|^cu(Kernel|Func)Get|GetProcAddress"
    r"|^(cuda|hip)(Malloc|Free)|^cudaMemGetInfo"
)
"""Calls that load code or ask about it, and that fill the allocator's cache or give back what was tried with."""
COLD_SEGMENT_NS = Range(40_000, 60_000, 120_000, "planted cold starts on an H200")
"""In uneven steps, a segment longer than this is taken for compiling, planning or tuning."""
STEADY_COLD_NS = 2_000_000
"""A stretch of this length inside an op that launches work is compiling, planning or tuning."""
PLANNING_NS = Range(300_000, 500_000, 2_000_000, "plans of cuFFT on an H200's host take 2 to 4 ms")
DISPATCH_NS = 30_000.0
"""An op that spends more CPU time than this for each call and op within it does more than to dispatch them."""
LEAST_PLANNING = 0.2
"""Share of the step that planning takes at least, where every step is cold."""
OWN_WORK_NS = 300_000.0
"""Python outside ops for longer than this is the program's own work, and is done in warm steps too."""
WARM_CALLS = 4.0
"""A call that takes this many times the median of its name was loading something."""

SEGMENT_NS, OP_NS, LAUNCH_NS = 4_500.0, 800.0, 2_500.0
"""Dispatch in the steady state: for each launch, for each op, and of the call itself (stopwatch of 22 dispatch-bound
programs on an H200: 7.2 µs a launch and 0.7 µs an op)."""
REGION_NS = 22_000.0
"""Guards and wrappers of one call of compiled code in the steady state, beside its launches: 18 to 30 µs (a region of
one kernel takes 29.5 µs, 32 regions of 80 kernels 1,769, one of 65 kernels 702)."""
LOADED_CALL_NS = 1_000.0
"""What is left of a call that loads code when there is nothing to load, and of the CPU time before it."""
COPY_CALL_NS = 5_500.0
"""What is left of a call that begins a copy within the device (5.6 µs in the same programs)."""
COLD_PYTHON = 2.5
"""Python before a step's first op in cold steps, in times of the same in warm ones (four programs: 1.5 to 3.1)."""
PROFILER_NS = 30_000.0
"""What of that time a cold step has where there is no Python of its own: the end of the profiler's step()."""
COMPILED_AGAIN = Range(1.0, 3.2, 5.0, "3.2 to 3.7 bring three compiled programs to the stopwatch's time")
"""Code that was compiled in the step, in times of the steady state, when it runs the second time: all of it is its
own, and no cache holds it yet."""
RUN_AGAIN = Range(1.0, 1.3, 3.0, "the same: convolution 1.0 to 1.3, transform 1.3, attention 1.3 to 1.6")
"""The same for a shape that ran once: the plan is its own, and the code is everybody's."""
SETTLING = Range(0.7, 1.0, 1.5, "stopwatch against the calm steps of three programs: 0.75 to 1.1")
"""Dispatch in the first steps after a warm-up, in times of the first calm steps of the trace, which are just that."""


@intervention(
    "warm_up",
    5,
    "Loading, compiling and tuning are done before the steps that count.",
    "Long stretches of CPU time inside ops, slow first calls, the loading of modules, the capture of graphs and the "
    "trying out of kernels come from cold starts; loading data does not.",
    "Steps recorded after the cold ones are the first warm ones; of alike ones, each part takes the least it took, and "
    "the first recorded keeps 0.4 of what it took longer. "
    "Where every step is cold, the warm one takes the dispatch of its ops and the work that remains.",
    "As many steps as were recorded are meant, right after the warm-up: code that was compiled for one of them runs "
    "the second time, and takes three times what it takes later.",
)
def warm_up(bench: Workbench, case: int) -> int:
    """Preparations go, and long segments and calls shrink to what they take when everything is loaded."""
    scene, graph = bench.scene, bench.graph
    lengths = scene.marks.lengths(graph, simulate(graph))
    planning = _planning(scene, case)
    gone = without_captures(bench)
    every = len(gone) >= scene.step_count / 2 or _in_many_steps(scene, planning, lengths)
    if not (are_uneven(lengths) or every or gone):
        return 0
    bare = bench.graph.duration.copy()
    gone += without_compiling(bench)
    gone += without_trials(bench)
    without_tables(bench, planning)
    graph = bench.graph
    compiled = _compiled(scene)
    slower = np.where(compiled, COMPILED_AGAIN.at(case), RUN_AGAIN.at(case))
    long = scene.in_steps & (scene.input_share < 0.3) & (graph.duration > (0.0 if every else COLD_SEGMENT_NS.at(case)))
    segments = np.flatnonzero((graph.kind == SEGMENT) & long)
    warm = _warm_segments(bench, segments, gone, slower)
    changed = int((warm < graph.duration[segments]).sum())
    bench.shorten(segments, warm)
    changed += _warm_calls(bench, slower, case)
    if not every:
        calm = calm_steps(lengths, scene.marks.lengths(graph, simulate(graph)))
        if calm.all() and not (gone or bench.gone.any()):
            graph.duration[:] = bare
            return 0
        bench.counted = calm
        step_of = step_that_follows(scene)
        settle(bench, bare, np.flatnonzero(calm & untouched(scene, gone)), step_of, SETTLING.at(case))
        first = np.flatnonzero(compiled & (graph.kind == SEGMENT) & (step_of == np.argmax(calm)))
        again = _warm_segments(bench, first, gone, slower) - graph.duration[first]
        graph.duration[first] += np.maximum(again, 0.0) * float(np.mean(calm))
    return len(gone) + changed


def _compiled(scene: Scene) -> Bools:
    """CPU nodes in which compiled code runs."""
    graph, regions = scene.graph, scene.trace.ops.filter(named(api_names.COMPILED_REGION))
    result = np.zeros(len(graph), bool)
    for (thread,), own in regions.filter(pl.col("thread").is_not_null()).group_by("thread"):
        spans = union(integers(own["start_ns"]), integers(own["end_ns"]))
        nodes = np.flatnonzero((graph.kind != WORK) & (graph.lane == thread))
        last = np.searchsorted(spans.starts, graph.measured_end[nodes]) - 1
        result[nodes] = (last >= 0) & (spans.ends[last] > graph.measured_start[nodes])
    return result


def _planning(scene: Scene, case: int) -> Bools:
    """Outermost ops (rows of `ops`, and one for none) that plan or compile: they compute for longer than they dispatch,
    and no other op of their name and shapes does."""
    graph, ops = scene.graph, scene.trace.ops
    segments, root = _computing(scene)
    computing, longest, within = (np.zeros(len(ops) + 1) for _ in range(3))
    np.add.at(computing, root, graph.duration[segments])
    np.maximum.at(longest, root, graph.duration[segments])
    np.add.at(within, scene.roots, 1.0)
    np.add.at(within, scene.root_op_of_call[graph.kind == CALL], 1.0)
    launches = np.append(matches(ops["name"], api_names.COMPILING_OPS).to_numpy(), False)
    launches[scene.root_op[scene.work]] = True
    planning = (computing > PLANNING_NS.at(case)) & (computing > DISPATCH_NS * within) | (longest > STEADY_COLD_NS)
    planning &= launches
    planning[NONE] = False
    planning &= ~_done_before(scene, np.flatnonzero(planning))
    return planning


def _computing(scene: Scene) -> tuple[Int64s, Int64s]:
    """Segments inside ops that do not load data, and the outermost op of each."""
    inside = (scene.graph.kind == SEGMENT) & scene.in_steps & (scene.op_share > 0.5) & (scene.input_share < 0.3)
    segments = np.flatnonzero(inside)
    root = scene.root_op_at(segments)
    return segments[root != NONE], root[root != NONE]


def _in_many_steps(scene: Scene, planning: Bools, lengths: Floats) -> bool:
    """Whether every other step plans something of its own, and all of them together for a good part of their time."""
    segments, root = _computing(scene)
    mine = segments[planning[root]]
    much = float(scene.graph.duration[mine].sum()) > LEAST_PLANNING * float(np.median(lengths)) * scene.step_count
    steps = np.unique(scene.step[mine])
    return much and int((steps != NONE).sum()) >= scene.step_count / 2


def _done_before(scene: Scene, ops: Int64s) -> Bools:
    """Of these ops, those that other steps repeat with the same shapes: they are slow, and not because they are new."""
    table, steps = scene.trace.ops[ops], integers(scene.trace.steps_in_view["start_ns"])
    known = table.select(
        pl.col("name", "shapes").cast(pl.String), step=np.searchsorted(steps, integers(table["start_ns"]), side="right")
    )
    elsewhere = pl.col("step").n_unique().over("name", "shapes") > 1
    again = known.select(elsewhere & (pl.col("shapes").fill_null("") != ""))
    result = np.zeros(len(scene.trace.ops) + 1, bool)
    result[ops] = again.to_series().to_numpy()
    return result


def _warm_segments(bench: Workbench, nodes: Int64s, gone: list[Stretch], slower: Floats) -> Floats:
    """What CPU time between calls shrinks to: the dispatch of the ops in it, and the program's own work outside ops."""
    scene, graph = bench.scene, bench.graph
    ops = _remaining(scene.trace.ops, gone)
    regions = ops.filter(matches(ops["name"], api_names.COMPILED_REGION))
    calls = scene.call_of_work[scene.work]
    launching = np.isin(graph.before[nodes], graph.row[calls[calls != NONE]])
    warm = np.where(launching, SEGMENT_NS, LOADED_CALL_NS) + OP_NS * _within(scene, nodes, ops)
    warm += REGION_NS * _within(scene, nodes, regions) + _begins(bench, nodes)
    result: Floats = slower[nodes] * warm + _own_work(bench, nodes)
    return result


def _begins(bench: Workbench, segments: Int64s) -> Floats:
    """Python with which a step begins, before its first op, as far as it is neither the profiler's nor a compiler's."""
    scene, steps = bench.scene, bench.scene.trace.steps_in_view
    ops = scene.trace.ops
    if not len(steps) or on_device(steps) or len(ops.filter(named(api_names.COMPILED_REGION))):
        return np.zeros(len(segments))
    thread, starts, ends = steps["thread"][0], integers(steps["start_ns"]), integers(steps["end_ns"])
    first = np.sort(integers(ops.filter(pl.col("thread") == thread)["start_ns"]))
    until = np.append(first, NEVER)[np.searchsorted(first, starts)]
    share = scene.covered(starts, np.minimum(until, ends), np.full(len(starts), thread))[segments]
    recorded = (bench.graph.measured_end - bench.graph.measured_start)[segments] * share
    begin = np.maximum(recorded - PROFILER_NS, 0.0)
    return np.where(begin < OWN_WORK_NS, begin / COLD_PYTHON, 0.0)


def _remaining(ops: pl.DataFrame, gone: list[Stretch]) -> pl.DataFrame:
    """The ops that do not begin in what is gone."""
    starts, threads = integers(ops["start_ns"]), integers(ops["thread"])
    inside = np.zeros(len(ops), bool)
    for thread, start, end in gone:
        inside |= (threads == thread) & (starts >= start) & (starts < end)
    return ops.filter(~inside)


def _own_work(bench: Workbench, segments: Int64s) -> Floats:
    """Long CPU time outside ops, as far as most steps have as much of it."""
    scene = bench.scene
    outside = bench.graph.duration[segments] * (1 - scene.op_share[segments])
    outside = np.where(outside > OWN_WORK_NS, outside, 0.0)
    totals = np.zeros(scene.step_count + 1)
    np.add.at(totals, np.where(scene.step[segments] == NONE, scene.step_count, scene.step[segments]), outside)
    usual = float(np.median(totals[:-1]))
    kept: Floats = outside * np.minimum(1.0, usual / np.maximum(totals, 1.0))[scene.step[segments]]
    return kept


def _within(scene: Scene, segments: Int64s, ops: pl.DataFrame) -> Floats:
    """How many of the ops each segment begins and ends: half for each."""
    graph, result = scene.graph, np.zeros(len(segments))
    threads = integers(ops["thread"])
    for lane in np.unique(graph.lane[segments]):
        mine, own = np.flatnonzero(graph.lane[segments] == lane), threads == lane
        moments = np.sort(np.concatenate([integers(ops[name])[own] for name in ("start_ns", "end_ns")]))
        begin, end = graph.measured_start[segments[mine]], graph.measured_end[segments[mine]]
        result[mine] = (np.searchsorted(moments, end) - np.searchsorted(moments, begin)) / 2
    return result


def _warm_calls(bench: Workbench, slower: Floats, case: int) -> int:
    """Calls that load take no time; launches and slow calls take what they usually do."""
    scene, graph = bench.scene, bench.graph
    names, inside = scene.call_name, (graph.kind == CALL) & scene.in_steps
    before = graph.duration.copy()
    for name in set(names[inside].tolist()):
        calls = np.flatnonzero(inside & (names == name))
        usual = float(np.median(graph.duration[calls]))
        if re.search(LOADING, name):
            bench.shorten(calls, LOADED_CALL_NS)
        elif re.search(api_names.GRAPH_LAUNCH, name):
            kernels = np.bincount(integers(scene.trace.gpu["api_id"]) + 1, minlength=len(scene.trace.api) + 1)
            nodes: Floats = kernels[graph.row[calls] + 1].astype(np.float64)
            bench.shorten(calls, constants.GRAPH_LAUNCH_NS.at(case) + nodes * constants.GRAPH_NODE_NS.at(case))
        elif re.search(f"{api_names.KERNEL_LAUNCH}|{api_names.MEMSET}", name):
            bench.shorten(calls, slower[calls] * LAUNCH_NS)
        else:
            bench.shorten(calls[graph.duration[calls] > max(WARM_CALLS * usual, 50_000.0)], usual)
    within = scene.call_of_work[scene.work_text("copy_kind") == "DtoD"]
    within = within[(within != NONE) & inside[within]]
    bench.shorten(within, slower[within] * COPY_CALL_NS)
    return int((graph.duration < before).sum())
