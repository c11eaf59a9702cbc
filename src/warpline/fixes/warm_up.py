"""Removes cold starts: loading, compiling and tuning that happens only in the first steps."""

from __future__ import annotations

import re

import numpy as np
import polars as pl

from warpline.fixes.claim import Claim
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Advice, Fix, Rule
from warpline.fixes.words import several
from warpline.replay.costs import constants
from warpline.replay.costs.ranges import Range
from warpline.replay.graph.model import CALL, SEGMENT
from warpline.replay.patterns.calm_steps import MOSTLY, calm_steps, settle, step_that_follows, untouched
from warpline.replay.patterns.planning import STEADY_COLD_NS, in_compiled_code, planned_in_many_steps, planning_ops
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
from warpline.replay.whatif import Prediction
from warpline.replay.workbench import Workbench
from warpline.trace import api_names
from warpline.trace.columns import NONE, Floats, Int64s, integers
from warpline.trace.names import matches, named
from warpline.trace.steps import on_device
from warpline.units import duration

LOADING = (
    r"^(cu|hip)(Module|Library)(Load|Get|Unload)|^cudaFuncGet|Occupancy|^cu(Kernel|Func)Get|GetProcAddress"
    r"|^(cuda|hip)(Malloc|Free)|^cudaMemGetInfo"
)
"""Calls that load code or query it, that fill the allocator's cache, or that free the memory of trial runs."""
COLD_SEGMENT_NS = Range(40_000, 60_000, 120_000, "planted cold starts on an H200")
"""In uneven steps, a longer segment counts as compiling, planning or tuning."""
OWN_WORK_NS = 300_000.0
"""Longer Python time outside ops belongs to the program, and warm steps have it too."""
WARM_CALLS = 4.0
"""A call that takes this many times the median of its name was loading something."""
SEGMENT_NS, OP_NS, LAUNCH_NS = 4_500.0, 800.0, 2_500.0
"""Dispatch in the steady state: for each launch, for each op, and of the call itself (stopwatch of 22 dispatch-bound
programs on an H200: 7.2 µs a launch and 0.7 µs an op)."""
REGION_NS = 22_000.0
"""Guards and wrappers of one call of compiled code in the steady state, beside its launches: 18 to 30 µs (a region of
one kernel takes 29.5 µs, 32 regions of 80 kernels 1,769, one of 65 kernels 702)."""
LOADED_CALL_NS = 1_000.0
"""Remaining time of a call that loads code, and of the CPU segment before it, when nothing is left to load."""
COPY_CALL_NS = 5_500.0
"""Time of a call that starts a device-to-device copy (5.6 µs in the same programs)."""
COLD_PYTHON = 2.5
"""Python time before a cold step's first op, as a multiple of a warm step's (four programs: 1.5 to 3.1)."""
PROFILER_NS = 30_000.0
"""Part of that time that comes from the profiler's step(), not from the program."""
COMPILED_AGAIN = Range(1.0, 3.2, 5.0, "3.2 to 3.7 bring three compiled programs to the stopwatch's time")
"""Second run of code that was compiled in the step, as a multiple of steady state: the code is specific to this step
and no cache holds it yet."""
RUN_AGAIN = Range(1.0, 1.3, 3.0, "the same: convolution 1.0 to 1.3, transform 1.3, attention 1.3 to 1.6")
"""The same for a shape that ran once: only the plan is new, and the code is shared."""
SETTLING = Range(0.7, 1.0, 1.5, "stopwatch against the calm steps of three programs: 0.75 to 1.1")
"""Dispatch in the first steps after a warm-up, as a multiple of the trace's first calm steps."""
LEAST_SHARE = 0.05
CERTAIN_GAIN = 2.0
"""A replayed gain this large needs no idle time as evidence: compiling may overlap with kernels."""
WORTH_COUNTING_NS = 20_000
"""Segments and calls that lose less are ordinary dispatch, which is faster on a warm CPU."""


def apply(bench: Workbench, case: int) -> int:
    """Remove preparations, and shrink long segments and calls to their warm duration."""
    scene, graph = bench.scene, bench.graph
    lengths = scene.marks.lengths(graph, simulate(graph))
    planning = planning_ops(scene, case)
    gone = without_captures(bench)
    every = len(gone) >= scene.step_count / 2 or planned_in_many_steps(scene, planning, lengths)
    if not (are_uneven(lengths) or every or gone):
        return 0
    bare = bench.graph.duration.copy()
    gone += without_compiling(bench)
    gone += without_trials(bench)
    without_tables(bench, planning)
    graph = bench.graph
    compiled = in_compiled_code(scene)
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


def _warm_segments(bench: Workbench, nodes: Int64s, gone: list[Stretch], slower: Floats) -> Floats:
    """Warm duration of CPU segments: the dispatch of their ops, and the program's own time outside ops."""
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
    """Python time before a step's first op, without the profiler's and compiler's share."""
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
    """The ops that do not start inside a removed segment."""
    starts, threads = integers(ops["start_ns"]), integers(ops["thread"])
    inside = np.zeros(len(ops), bool)
    for thread, start, end in gone:
        inside |= (threads == thread) & (starts >= start) & (starts < end)
    return ops.filter(~inside)


def _own_work(bench: Workbench, segments: Int64s) -> Floats:
    """Long CPU time outside ops, as far as most steps have it."""
    scene = bench.scene
    outside = bench.graph.duration[segments] * (1 - scene.op_share[segments])
    outside = np.where(outside > OWN_WORK_NS, outside, 0.0)
    totals = np.zeros(scene.step_count + 1)
    np.add.at(totals, np.where(scene.step[segments] == NONE, scene.step_count, scene.step[segments]), outside)
    usual = float(np.median(totals[:-1]))
    kept: Floats = outside * np.minimum(1.0, usual / np.maximum(totals, 1.0))[scene.step[segments]]
    return kept


def _within(scene: Scene, segments: Int64s, ops: pl.DataFrame) -> Floats:
    """Number of ops in each segment; the start and the end of an op count one half each."""
    graph, result = scene.graph, np.zeros(len(segments))
    threads = integers(ops["thread"])
    for lane in np.unique(graph.lane[segments]):
        mine, own = np.flatnonzero(graph.lane[segments] == lane), threads == lane
        moments = np.sort(np.concatenate([integers(ops[name])[own] for name in ("start_ns", "end_ns")]))
        begin, end = graph.measured_start[segments[mine]], graph.measured_end[segments[mine]]
        result[mine] = (np.searchsorted(moments, end) - np.searchsorted(moments, begin)) / 2
    return result


def _warm_calls(bench: Workbench, slower: Floats, case: int) -> int:
    """Shorten calls that load code to almost nothing, and launches and slow calls to their usual time."""
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


def cold_start(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Steps in which code is still being loaded, compiled or tuned."""
    cold = evidence.idle["cold_start"] / evidence.steps
    change, scene = evidence.changed(FIX.name), evidence.scene
    # No op takes this long to dispatch, so the time saved in such segments was compiling or planning.
    long = change.host & (change.saved_ns > STEADY_COLD_NS) & (scene.op_share > MOSTLY)
    cold = max(cold, float(change.saved_ns[evidence.in_steps(long)].sum()) / evidence.steps)
    if cold < LEAST_SHARE * evidence.step_ns and prediction.gain.expected < CERTAIN_GAIN:
        return None
    host = evidence.in_steps(change.host & (change.saved_ns > 0))
    saved = float(change.saved_ns[host].sum()) / evidence.steps
    host &= change.saved_ns > WORTH_COUNTING_NS
    segments = host & (scene.graph.kind == SEGMENT)
    calls, tried = host & ~segments, change.work & change.gone
    trials = f", and {several(evidence.per_step(tried), 'kernel')} run only for tuning" if tried.any() else ""
    return Claim(
        f"The steps are not warmed up: each spends {duration(saved)} of CPU time on loading, compiling or tuning "
        f"({several(evidence.per_step(segments), 'long CPU segment')} and "
        f"{several(evidence.per_step(calls), 'slow call')}){trials}.",
        evidence.host_places(host, change.saved_ns),
    )


FIX = Fix(
    name="warm_up",
    words="a warm-up",
    summary="Loading, compiling and tuning happen before the measured steps.",
    assumptions=(
        (
            "Long CPU segments inside ops, slow first calls, module loading, graph capture and kernel autotuning come "
            "from cold starts; data loading does not."
        ),
        (
            "Steps recorded after the cold ones are the first warm ones. Among similar steps, each part takes its "
            "minimum, and the first one keeps 0.4 of its extra time. If every step is cold, a warm step takes the "
            "dispatch time of its ops plus the remaining operations."
        ),
        (
            "The prediction is for as many steps as were recorded, right after the warm-up: code compiled for one of "
            "them runs for the second time, and takes three times as long as in steady state."
        ),
    ),
    effort="few_lines",
    apply=apply,
    findings=(
        Rule(
            name="cold_start",
            cause="cold_start",
            summary="code is still being loaded, compiled or tuned in the measured steps",
            look=cold_start,
            advice=Advice(
                pytorch=(
                    "Run a few steps of every shape before the measured steps (torch.profiler.schedule(wait=1, "
                    "warmup=3, active=5)); capture graphs when the program starts; keep compiled code "
                    "(TORCHINDUCTOR_CACHE_DIR); keep shapes fixed or torch.compile(model, dynamic=True)."
                ),
                cuda=(
                    "Launch every kernel once, and create handles, plans and workspaces, before the measured "
                    "loop; CUDA_MODULE_LOADING=EAGER loads all code at startup."
                ),
                other=(
                    "Run a few steps of every shape before the measured steps, and keep the compiler's cache "
                    "between runs."
                ),
            ),
        ),
    ),
    needs=("steps", "CPU ops or API calls, and their times"),
    after=(),
)
