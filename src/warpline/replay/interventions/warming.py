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
WARM_SEGMENT_NS = 20_000.0
"""What is left of it when it is warm: the dispatch of an op."""
TRIED_KERNELS = 6
TUNED_OPS = ["aten::cudnn_convolution", "aten::miopen_convolution", "aten::_convolution", "aten::convolution"]
"""Ops that launch more kernels than this when cuDNN or MIOpen tries out algorithms."""
LOADED_CALL_NS = 1_000.0
"""What is left of a call that loads code when there is nothing to load."""
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
    graph.duration[long] = WARM_SEGMENT_NS
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
    changed += _without_trials(bench)
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
