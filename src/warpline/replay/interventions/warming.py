"""Cold starts: what is loaded, compiled or tuned in the first steps and never again."""

from __future__ import annotations

import re

import numpy as np

from warpline.replay.bench import Bench
from warpline.replay.interventions.registry import Range, intervention
from warpline.replay.model import CALL, SEGMENT
from warpline.replay.simulate import simulate
from warpline.trace.nesting import NONE

LOADING = (
    r"^(cu|hip)(Module|Library)(Load|Get|Unload)|^cudaFuncGet|Occupancy|^cu(Kernel|Func)Get|GetProcAddress"
    r"|^(cuda|hip)Malloc|^cudaMemGetInfo"
)
"""Calls that load code or ask about it, and that fill the allocator's cache."""
COLD_SEGMENT_NS = Range(40_000, 60_000, 500_000, "planted cold starts on an H200")
"""In a cold start, a segment longer than this is taken for compiling, planning or tuning."""
STEADY_COLD_NS = 2_000_000
"""Where every step is as long as the others, this much shows that code is compiled or planned anew in each of them."""
UNEVEN = 1.5
WARM_SEGMENT_NS = 30_000.0
"""What is left of it when it is warm: the dispatch of an op."""
TRIED_KERNELS = 6
TUNED_OPS = ["aten::cudnn_convolution", "aten::miopen_convolution", "aten::_convolution", "aten::convolution"]
"""Ops that launch more kernels than this when cuDNN or MIOpen tries out algorithms."""
LOADED_CALL_NS = 1_000.0
"""What is left of a call that loads code when there is nothing to load."""
PLANNING_NS = Range(300_000, 500_000, 2_000_000, "plans of cuFFT on an H200's host take 2 to 4 ms")
DISPATCH_NS = 60_000.0
"""An op that spends more CPU time than this for each call and op within it does more than to dispatch them."""
LEAST_PLANNING = 0.2
"""Share of the step that planning takes at least."""
WARM_CALLS = 4.0
"""A call that takes this many times the median of its name was loading something."""


@intervention(
    "warm_up",
    5,
    "Loading, compiling and tuning are done before the steps that count.",
    "Long stretches of CPU time inside ops, slow first calls, the loading of modules and the trying out of kernels "
    "come from cold starts; loading data does not.",
    "What the warm step takes is the dispatch of its ops and the work that remains.",
)
def warm_up(bench: Bench, case: int) -> int:
    """Long segments and calls shrink to what they take when everything is loaded."""
    scene, graph = bench.scene, bench.graph
    lengths = scene.marks.lengths(graph, simulate(graph))
    uneven = float(np.mean(lengths)) > UNEVEN * float(np.median(lengths))
    # Loading data and the program's own work between ops are warm as well.
    inside = (scene.op_share > 0.5) | uneven
    cold = scene.in_steps & (graph.kind == SEGMENT) & (scene.input_share < 0.3) & inside
    uneven |= int((cold & (graph.duration > STEADY_COLD_NS)).sum()) > scene.step_count / 2
    limit = COLD_SEGMENT_NS.at(case) if uneven else np.inf
    long = np.flatnonzero(cold & (graph.duration > limit))
    calls = scene.call_of_work[scene.work]
    launching = np.isin(graph.before[long], graph.row[calls[calls != NONE]])
    graph.duration[long] = np.where(launching, WARM_SEGMENT_NS, LOADED_CALL_NS)
    changed = len(long)
    names = scene.call_name
    for name in set(names[graph.kind == CALL].tolist()):
        calls = np.flatnonzero((graph.kind == CALL) & (names == name) & scene.in_steps)
        if re.search(LOADING, name) and uneven:
            loading = calls[graph.duration[calls] > LOADED_CALL_NS]
            graph.duration[loading] = LOADED_CALL_NS
            changed += len(loading)
            continue
        usual = float(np.median(graph.duration[calls])) if len(calls) else 0.0
        slow = calls[graph.duration[calls] > max(WARM_CALLS * usual, 50_000.0)] if uneven else calls[:0]
        graph.duration[slow] = usual
        changed += len(slow)
    changed += _without_trials(bench) + _without_plans(bench, case)
    bench.best_step = changed > 0
    return changed


def _without_trials(bench: Bench) -> int:
    """Of an op that tries many kernels to find the fastest, only the last stays: the one that was chosen."""
    scene = bench.scene
    nodes = scene.work[(scene.op[scene.work] != NONE) & scene.in_steps[scene.work] & ~bench.gone[scene.work]]
    ops, place, counts = np.unique(scene.op[nodes], return_inverse=True, return_counts=True)
    tuned = (counts > TRIED_KERNELS) & np.isin(scene.op_name[nodes[np.unique(place, return_index=True)[1]]], TUNED_OPS)
    last = np.zeros(len(ops), np.int64)
    np.maximum.at(last, place, nodes)
    trials = nodes[tuned[place] & (nodes != last[place])]
    bench.remove_work(trials, dispatch=False)
    roots = np.unique(scene.root_op[trials])
    bench.remove_ops(roots[roots != NONE])
    chosen = scene.call_of_work[last[tuned]]
    bench.graph.duration[chosen[chosen != NONE]] = WARM_SEGMENT_NS
    return len(trials)


def _without_plans(bench: Bench, case: int) -> int:
    """Ops that compute on the CPU for much longer than dispatching takes are planning: warm, they find their plan.

    The tables that they copy to the device and clear there are part of the plan.
    """
    scene, graph = bench.scene, bench.graph
    ops = scene.trace.ops
    segments = np.flatnonzero((graph.kind == SEGMENT) & scene.in_steps & (scene.op_share > 0.5))
    root = scene.root_op_at(segments)
    segments, root = segments[root != NONE], root[root != NONE]
    computing, within = np.zeros(len(ops) + 1), np.zeros(len(ops) + 1)
    np.add.at(computing, root, graph.duration[segments])
    np.add.at(within, scene.roots, 1.0)
    np.add.at(within, scene.root_op_of_call[graph.kind == CALL], 1.0)
    launches = np.zeros(len(ops) + 1, bool)
    launches[scene.root_op[scene.work]] = True
    planning = (computing > PLANNING_NS.at(case)) & (computing > DISPATCH_NS * within) & launches
    planning[NONE] = False
    if computing[planning].sum() < LEAST_PLANNING * scene.step_count * float(
        np.median(scene.marks.lengths(graph, simulate(graph)))
    ):
        return 0
    mine = planning[root]
    graph.duration[segments[mine]] *= (WARM_SEGMENT_NS / np.maximum(computing, 1.0))[root[mine]]
    tables = scene.work[planning[scene.root_op[scene.work]] & (scene.kind[scene.work] != "kernel")]
    bench.remove_work(tables[~bench.gone[tables]], dispatch=False)
    return int(planning.sum())
