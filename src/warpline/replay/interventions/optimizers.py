"""Updates of a model's parameters: where they are, and what a fused optimiser makes of them."""

from __future__ import annotations

import re

import numpy as np

from warpline.replay.costs import constants
from warpline.replay.graph.model import CALL
from warpline.replay.interventions.registry import intervention
from warpline.replay.patterns.loops import loops
from warpline.replay.patterns.tensor_lists import IN_PLACE, NORMS, OTHERS, shapes_of_turns
from warpline.replay.scene import Scene
from warpline.replay.workbench import Workbench
from warpline.trace.columns import NONE, Bools, Int64s
from warpline.trace.names import texts
from warpline.work.parse import json_list

OPTIMIZER_RANGE = r"^Optimizer\.step"
"""torch.optim marks each step with a range of this name."""
UPDATING = (*IN_PLACE, *NORMS, *OTHERS, "aten::to", "aten::square", "aten::clamp")
"""Ops that updates of parameters are written with."""
ROOTS = ("aten::sqrt", "aten::sqrt_", "aten::rsqrt", "aten::rsqrt_")
QUOTIENTS = ("aten::div", "aten::div_", "aten::addcdiv", "aten::addcdiv_", "aten::rsqrt", "aten::rsqrt_")
"""An update that divides by a root is Adam's, or that of one of its relatives."""
ON_A_NUMBER = re.compile(r"\[\s*\[\s*\]")
"""The recorded shapes of an op that works on one number."""
KERNELS_PER_PARAMETER = 8
"""Kernels that AdamW launches per parameter without fusion (torch 2.11, foreach=False), from our H200 traces."""
PASSES = {"add": 3, "sub": 3, "mul": 2, "div": 2, "lerp": 3, "addcmul": 4, "addcdiv": 4, "sqrt": 2, "copy": 2}
"""Tensors that an op of an optimiser reads and writes; scalars are free."""
MANY_KERNELS = 12
"""An optimiser step with fewer kernels is fused already, or nearly so."""


def in_optimizer(scene: Scene) -> Bools:
    """Nodes of updates of parameters: those of torch.optim, and those that a program wrote itself."""
    ranges = scene.within_ranges(OPTIMIZER_RANGE)
    result: Bools = ranges | _written_by_hand(scene, ~ranges)
    return result


def counted_on_the_host(scene: Scene) -> Bools:
    """Nodes of updates that go through the parameters one by one with numbers of the host's that change in every step.

    Adam's corrections are made of its count of steps, and so it cannot be captured unless that count is a tensor on
    the device. Whoever has all parameters in one list has but to say so (capturable=True).
    """
    inside = scene.once(in_optimizer) & scene.in_steps
    kernels = np.flatnonzero(inside & (scene.kind == "kernel"))
    result = np.zeros(len(inside), bool)
    for step in np.unique(scene.step[kernels]):
        mine = kernels[scene.step[kernels] == step]
        on_device = any(ON_A_NUMBER.match(shapes) for shapes in scene.op_column("shapes")[mine].tolist())
        if np.isin(scene.op_name[mine], ROOTS).any() and not on_device and not _takes_lists(scene, mine):
            result |= inside & (scene.step == step)
    return result


def _takes_lists(scene: Scene, kernels: Int64s) -> bool:
    """Whether most of these kernels work on many tensors at once."""
    return sum("multi_tensor" in name for name in scene.name[kernels]) > len(kernels) // 2


def _written_by_hand(scene: Scene, wanted: Bools) -> Bools:
    """Nodes between the first and the last op of each loop that updates parameters."""
    inside, moment = np.zeros(len(scene.graph), bool), scene.launch_moment
    kernels = np.flatnonzero(wanted & scene.in_steps & (scene.kind == "kernel") & (scene.root_op != NONE))
    if not len(kernels):
        return inside
    names = texts(scene.trace.ops["name"])
    trained = set(scene.step[kernels[scene.of_autograd[kernels]]].tolist())
    for lane in np.unique(scene.graph.lane[kernels]):
        nodes = kernels[scene.graph.lane[kernels] == lane]
        for turns in loops(nodes, np.unique(scene.op_name[nodes], return_inverse=True)[1], scene.step):
            roots = scene.root_op[turns]
            if turns.size < MANY_KERNELS or not _updates(scene, roots[0], names[roots[0]].tolist()):
                continue
            shapes = shapes_of_turns(scene, turns)
            # Turns of one shape may go on with what the turn before made, as a solver's do.
            different = len(set.union(*shapes)) > 1 or int(scene.step[turns[0, 0]]) in trained
            if different and all(len(each) <= 1 for each in shapes):
                begin, end = scene.op_spans[0][roots[0, 0]], scene.op_spans[1][roots[-1, -1]]
                inside |= (moment >= begin) & (moment < end)
    return inside


def _updates(scene: Scene, roots: Int64s, names: list[str]) -> bool:
    """Whether these are the ops of an update: a quotient of averages, or a step against the gradient."""
    if not set(names) <= set(UPDATING) or not set(names) & set(IN_PLACE):
        return False
    if set(names) & set(ROOTS) and set(names) & set(QUOTIENTS):
        return True
    numbers = [str(number) for row in roots.tolist() for number in json_list(scene.trace.ops["concrete"][row])]
    downhill = "aten::add_" in names and any(number.startswith("-") for number in numbers)
    return downhill or ("aten::sub_" in names and "aten::mul" in names and "aten::sub" not in names)


@intervention(
    "fused_optimizer",
    45,
    "The optimiser updates all parameters with a few fused kernels (fused=True).",
    "Optimiser steps are found by the range that torch.optim puts around them; those written by hand as loops over "
    "tensors that divide by a root, or go against the gradient.",
    "The host's time is that of a fused AdamW with as many parameters as the kernels suggest.",
)
def fused_optimizer(bench: Workbench, case: int) -> int:
    """Per step: one launch with the host's cost of the fused version, and a share of the device's time."""
    scene = bench.scene
    inside = scene.once(in_optimizer) & scene.in_steps
    kernels = np.flatnonzero(inside & scene.is_work & (scene.kind == "kernel") & ~bench.gone)
    changed = 0
    for step in np.unique(scene.step[kernels]):
        mine = kernels[scene.step[kernels] == step]
        if len(mine) < MANY_KERNELS:
            continue
        share = min(1.0, constants.FUSED_OPTIMIZER_DEVICE.at(case) * _remaining_passes(scene, mine))
        whole = float(bench.graph.duration[mine].sum())
        parameters = len(mine) / KERNELS_PER_PARAMETER * (4 if _takes_lists(scene, mine) else 1)
        host = constants.FUSED_OPTIMIZER_BASE_NS.at(case) + parameters * constants.FUSED_OPTIMIZER_PARAMETER_NS.at(case)
        cpu = np.flatnonzero(inside & ~scene.is_work & (scene.step == step) & (scene.graph.kind <= CALL))
        now = float(bench.graph.duration[cpu].sum())
        bench.remove_work(mine[1:], dispatch=False)
        bench.graph.duration[mine[0]] = max(share * whole, 2_000.0)
        bench.graph.duration[cpu] = 0.0
        calls = scene.call_of_work[mine]
        bench.graph.duration[calls[calls != NONE][:1]] = min(host, now)
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
