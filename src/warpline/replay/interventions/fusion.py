"""Fixes that fuse kernels: compilation, and optimisers with one kernel for all parameters."""

from __future__ import annotations

import re

import numpy as np

from warpline.replay.bench import NOTHING, Bench
from warpline.replay.interventions import constants
from warpline.replay.interventions.dispatch import launch_runs
from warpline.replay.interventions.registry import intervention
from warpline.replay.model import CALL, Bools, Int64s
from warpline.replay.scene import Scene
from warpline.trace.nesting import NONE

FUSIBLE = ("elementwise", "norm", "softmax", "reduction", "layout", "rng", "index", "quant", "memory")
"""Kernels that a compiler writes itself and fuses with their neighbours."""
OPTIMIZER_RANGE = r"^Optimizer\.step"
"""torch.optim marks each step with a range of this name."""
KERNELS_PER_PARAMETER = 8
"""Kernels that AdamW launches per parameter without fusion (torch 2.11, foreach=False), from our H200 traces."""
LARGE_SHARE = 0.4
"""Kernels of a chain that move at least this share of what the largest moves touch the whole tensor."""
ADDING = (
    "aten::index_add_", "aten::index_add", "aten::scatter_add_", "aten::scatter_add", "aten::scatter_reduce_",
    "aten::scatter_reduce", "aten::index_put_", "aten::_index_put_impl_", "aten::index_reduce_",
    "aten::embedding_dense_backward",
)  # fmt: skip
"""Ops that add many numbers up in one place: what they wait for each other stays, in whichever kernel they are."""
PASSES = {"add": 3, "sub": 3, "mul": 2, "div": 2, "lerp": 3, "addcmul": 4, "addcdiv": 4, "sqrt": 2, "copy": 2}
"""Tensors that an op of an optimiser reads and writes; scalars are free."""
MANY_KERNELS = 12
"""An optimiser step with fewer kernels is fused already, or nearly so."""


@intervention(
    "torch_compile",
    50,
    "Chains of elementwise, norm and reduction kernels are fused, and launched without the framework's dispatch.",
    "The compiled region is called once forwards and once backwards in each step; the optimiser stays as it is.",
    "A fused chain takes about as long as one pass over its tensors, since intermediate results stay in registers.",
    "Matrix products, convolutions and attention keep their kernels, and what adds up in one place keeps its time.",
)
def torch_compile(bench: Bench, case: int) -> int:
    """Fuses runs of fusible kernels, then shrinks the dispatch of what remains."""
    scene = bench.scene
    optimizer = scene.within_ranges(OPTIMIZER_RANGE)
    usable = scene.in_steps & ~bench.gone & ~optimizer & scene.is_work
    fusible = scene.kernels(*FUSIBLE) & usable
    removed = [NOTHING]
    for lane in np.unique(scene.graph.lane[fusible]):
        chains = _chains(scene.work[scene.graph.lane[scene.work] == lane], fusible, scene.step)
        if chains:
            removed.append(_fuse(bench, np.concatenate(chains), np.array([len(chain) for chain in chains]), case))
    fused = np.concatenate(removed)
    bench.remove_work(fused, dispatch=False)
    return len(fused) + _cheaper_dispatch(bench, case, ~optimizer)


def _fuse(bench: Bench, nodes: Int64s, counts: Int64s, case: int) -> Int64s:
    """Gives the longest kernel of each chain the time of all, and says which others go; chains lie end to end."""
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    chain = np.repeat(np.arange(len(counts)), counts)
    lengths = bench.graph.duration[nodes]
    most = np.maximum.reduceat(lengths, starts)
    at_most = np.flatnonzero(lengths == most[chain])
    longest = at_most[np.unique(chain[at_most], return_index=True)[1]]
    # By their bytes where these are known: a slow kernel may touch no more than a fast one.
    floor = bench.scene.floor_ns()[nodes]
    size = np.where(floor[longest][chain] > 0, floor, lengths)
    large = size >= LARGE_SHARE * np.maximum.reduceat(size, starts)[chain]
    least = np.minimum.reduceat(np.where(large, lengths, np.inf), starts)
    adding = np.where(bench.scene.under_op(*ADDING)[nodes], lengths, 0.0)
    new = np.maximum(least + constants.FUSED_CHAIN.at(case) * (most - least), np.maximum.reduceat(adding, starts))
    bench.graph.duration[nodes[longest]] = np.minimum(np.add.reduceat(lengths, starts), new)
    return np.delete(nodes, longest)


def _chains(nodes: Int64s, fusible: Bools, step: Int64s) -> list[Int64s]:
    """Runs of at least two fusible kernels that follow each other on a stream within a step."""
    group = np.cumsum(~fusible[nodes] | (np.diff(step[nodes], prepend=step[nodes[:1]]) != 0))
    chosen, keys = nodes[fusible[nodes]], group[fusible[nodes]]
    return [run for run in np.split(chosen, np.flatnonzero(np.diff(keys)) + 1) if len(run) > 1]


def _cheaper_dispatch(bench: Bench, case: int, wanted: Bools) -> int:
    """Each run of launches costs one call of a compiled region and little for each launch that remains."""
    scene, graph = bench.scene, bench.graph
    calls = scene.call_of_work[scene.work]
    alive = (calls != NONE) & ~bench.gone[scene.work]
    launching = np.zeros(len(graph), bool)
    launching[calls[alive]] = True
    changed = 0
    for run in launch_runs(bench, wanted, case):
        before = float(graph.duration[run].sum())
        count = int(launching[run].sum())
        after = constants.COMPILED_CALL_NS.at(case) + count * constants.COMPILED_LAUNCH_NS.at(case)
        if after >= before:
            continue
        first = int(run[launching[run]][0]) if count else int(run[0])
        graph.duration[run] = 0.0
        graph.duration[run[launching[run]]] = constants.COMPILED_LAUNCH_NS.at(case)
        graph.duration[first] += constants.COMPILED_CALL_NS.at(case)
        changed += count
    return changed


@intervention(
    "fused_optimizer",
    45,
    "The optimiser updates all parameters with a few fused kernels (fused=True).",
    "Optimiser steps are found by the range that torch.optim puts around them.",
    "The host's time is that of a fused AdamW with as many parameters as the kernels suggest.",
)
def fused_optimizer(bench: Bench, case: int) -> int:
    """Per step: one launch with the host's cost of the fused version, and a share of the device's time."""
    scene = bench.scene
    inside = scene.within_ranges(OPTIMIZER_RANGE) & scene.in_steps
    kernels = np.flatnonzero(inside & scene.is_work & (scene.kind == "kernel") & ~bench.gone)
    changed = 0
    calls = scene.call_of_work
    for step in np.unique(scene.step[kernels]):
        mine = kernels[scene.step[kernels] == step]
        if len(mine) < MANY_KERNELS:
            continue
        foreach = sum("multi_tensor" in name for name in scene.name[mine]) > len(mine) // 2
        share = min(1.0, constants.FUSED_OPTIMIZER_DEVICE.at(case) * _remaining_passes(scene, mine))
        whole = float(bench.graph.duration[mine].sum())
        parameters = len(mine) / KERNELS_PER_PARAMETER * (4 if foreach else 1)
        host = constants.FUSED_OPTIMIZER_BASE_NS.at(case) + parameters * constants.FUSED_OPTIMIZER_PARAMETER_NS.at(case)
        cpu = np.flatnonzero(inside & ~scene.is_work & (scene.step == step) & (scene.graph.kind <= CALL))
        now = float(bench.graph.duration[cpu].sum())
        bench.remove_work(mine[1:], dispatch=False)
        bench.graph.duration[mine[0]] = max(share * whole, 2_000.0)
        bench.graph.duration[cpu] = 0.0
        bench.graph.duration[int(calls[mine[0]])] = min(host, now)
        changed += len(mine)
    return changed


def _remaining_passes(scene: Scene, kernels: Int64s) -> float:
    """Share of the tensors read and written that a fused update still reads and writes.

    The ops tell which update it is: roots come with Adam (four tensors read, three written), several ops with momentum,
    a single one is plain descent, which reads two and writes one whether it is fused or not.
    """
    names = [re.sub(r"^aten::(_foreach_)?|_$", "", name) for name in set(scene.op_name[kernels].tolist())]
    passes = sum(PASSES.get(name, 2) for name in names)
    needed = 7 if "sqrt" in names else 5 if len(names) > 1 else 3
    return min(1.0, needed / max(passes, 1))
