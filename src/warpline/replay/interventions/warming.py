"""Cold starts: what is loaded, compiled or tuned in the first steps and never again."""

from __future__ import annotations

import re

import numpy as np

from warpline.replay.bench import Bench
from warpline.replay.interventions.registry import Range, intervention
from warpline.replay.model import CALL, SEGMENT
from warpline.trace.nesting import NONE

LOADING = r"^(cu|hip)(Module|Library)(Load|Get|Unload)|^cudaFuncGet|Occupancy|^cu(Kernel|Func)Get|GetProcAddress"
"""Calls that load code or ask about it."""
COLD_SEGMENT_NS = Range(100_000, 200_000, 1_000_000, "not measured yet: a cautious range")
"""A segment longer than this is taken for compiling, planning or tuning."""
WARM_SEGMENT_NS = 20_000.0
"""What is left of it when it is warm: the dispatch of an op."""
TRIED_KERNELS = 6
TUNED_OPS = ["aten::cudnn_convolution", "aten::miopen_convolution", "aten::_convolution", "aten::convolution"]
"""Ops that launch more kernels than this when cuDNN or MIOpen tries out algorithms."""
WARM_CALLS = 4.0
"""A call that takes this many times the median of its name was loading something."""


@intervention(
    "warm_up",
    5,
    "Loading, compiling and tuning are done before the steps that count.",
    "Long stretches of CPU time inside steps, slow first calls and the loading of modules come from cold starts.",
    "What the warm step takes is the dispatch of its ops and the work that remains.",
)
def warm_up(bench: Bench, case: int) -> int:
    """Long segments and calls shrink to what they take when everything is loaded."""
    scene, graph = bench.scene, bench.graph
    cpu = scene.in_steps & ~scene.is_work
    long = np.flatnonzero(cpu & (graph.kind == SEGMENT) & (graph.duration > COLD_SEGMENT_NS.at(case)))
    graph.duration[long] = WARM_SEGMENT_NS
    changed = len(long)
    names = scene.call_name
    for name in set(names[graph.kind == CALL].tolist()):
        calls = np.flatnonzero((graph.kind == CALL) & (names == name) & scene.in_steps)
        if re.search(LOADING, name):
            graph.duration[calls] = np.minimum(graph.duration[calls], 1_000.0)
            continue
        usual = float(np.median(graph.duration[calls])) if len(calls) else 0.0
        slow = calls[graph.duration[calls] > max(WARM_CALLS * usual, 50_000.0)]
        graph.duration[slow] = usual
        changed += len(slow)
    bench.best_step = changed > 0
    return changed + _without_trials(bench)


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
    bench.remove_calls(np.unique(scene.call_of_work[trials][scene.call_of_work[trials] != NONE]))
    return len(trials)
