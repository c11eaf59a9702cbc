"""Updates of a model's parameters: by torch.optim, or hand-written."""

from __future__ import annotations

import re

import numpy as np

from warpline.library_names import OPTIMIZER_STEP
from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.patterns.loops import MIN_REPEATS, loops
from warpline.replay.patterns.tensor_lists import IN_PLACE, NORMS, OTHERS, shapes_of_turns
from warpline.trace.arrays import NONE, Bools, Int64s, grouped
from warpline.work.parse import json_list

UPDATING = (*IN_PLACE, *NORMS, *OTHERS, "aten::to", "aten::square", "aten::clamp")
"""Ops that parameter updates use."""
ROOTS = ("aten::sqrt", "aten::sqrt_", "aten::rsqrt", "aten::rsqrt_")
QUOTIENTS = ("aten::div", "aten::div_", "aten::addcdiv", "aten::addcdiv_", "aten::rsqrt", "aten::rsqrt_")
"""An update that divides by a square root is Adam or similar."""
ON_A_NUMBER = re.compile(r"\[\s*\[\s*\]")
"""The recorded shapes of an op on a scalar."""
FUSED_OP = re.compile(r"^aten::_fused_(adam|adamw|sgd|adagrad)_?$")
MANY_KERNELS = 12
"""An optimizer step with fewer kernels is already fused, or nearly so."""


def in_optimizer(labelled: LabelledGraph) -> Bools:
    """Nodes of parameter updates: by torch.optim, or hand-written."""
    ranges = labelled.within_ranges(OPTIMIZER_STEP)
    result: Bools = ranges | _written_by_hand(labelled, ~ranges)
    return result


def updates_at_once(labelled: LabelledGraph) -> Bools:
    """Kernels of a fused optimizer (fused=True of torch.optim, apex, DeepSpeed), which updates in one pass."""
    fused = [name for name in labelled.known_ops if FUSED_OP.match(name)]
    whole: Bools = labelled.kernels("optimizer") | (labelled.under_op(*fused) & (labelled.kind == "kernel"))
    return whole


def counted_on_the_host(labelled: LabelledGraph) -> Bools:
    """Nodes of updates that iterate over the parameters with host numbers that change in every step.

    Adam's bias corrections depend on its step count, so it cannot be captured unless that count is a tensor on the
    device. With all parameters in one list, capturable=True is enough.
    """
    inside = labelled.once(in_optimizer) & labelled.in_steps
    kernels = np.flatnonzero(inside & (labelled.kind == "kernel"))
    result = np.zeros(len(inside), bool)
    for step in np.unique(labelled.step[kernels]):
        mine = kernels[labelled.step[kernels] == step]
        on_device = any(ON_A_NUMBER.match(shapes) for shapes in labelled.op_column("shapes")[mine].tolist())
        if np.isin(labelled.op_name[mine], ROOTS).any() and not on_device and not takes_lists(labelled, mine):
            result |= inside & (labelled.step == step)
    return result


def takes_lists(labelled: LabelledGraph, kernels: Int64s) -> bool:
    """Whether most of these kernels process many tensors at once."""
    return sum("multi_tensor" in name for name in labelled.name[kernels]) > len(kernels) // 2


def _written_by_hand(labelled: LabelledGraph, wanted: Bools) -> Bools:
    """Nodes between the first and the last op of each loop that updates parameters."""
    inside, moment = np.zeros(len(labelled.graph), bool), labelled.launch_moment
    kernels = np.flatnonzero(wanted & labelled.in_steps & (labelled.kind == "kernel") & (labelled.root_op != NONE))
    if not len(kernels):
        return inside
    names = labelled.trace.ops.name.texts
    trained = set(labelled.step[kernels[labelled.of_autograd[kernels]]].tolist())
    for _, nodes in grouped(kernels, labelled.graph.lane[kernels]):
        if len(nodes) < MIN_REPEATS:
            continue
        for turns in loops(nodes, np.unique(labelled.op_name[nodes], return_inverse=True)[1], labelled.step):
            roots = labelled.root_op[turns]
            if turns.size < MANY_KERNELS or not _updates(labelled, roots[0], names[roots[0]].tolist()):
                continue
            shapes = shapes_of_turns(labelled, turns)
            # Iterations of one shape may use the result of the previous one, as in a solver.
            different = len(set.union(*shapes)) > 1 or int(labelled.step[turns[0, 0]]) in trained
            if different and all(len(each) <= 1 for each in shapes):
                begin, end = labelled.op_spans[0][roots[0, 0]], labelled.op_spans[1][roots[-1, -1]]
                inside |= (moment >= begin) & (moment < end)
    return inside


def _updates(labelled: LabelledGraph, roots: Int64s, names: list[str]) -> bool:
    """Whether these are the ops of an update: a quotient of averages, or a gradient step."""
    if not set(names) <= set(UPDATING) or not set(names) & set(IN_PLACE):
        return False
    if set(names) & set(ROOTS) and set(names) & set(QUOTIENTS):
        return True
    numbers = [
        str(number) for row in roots.tolist() for number in json_list(labelled.trace.stored("ops")["concrete"][row])
    ]
    downhill = "aten::add_" in names and any(number.startswith("-") for number in numbers)
    return downhill or ("aten::sub_" in names and "aten::mul" in names and "aten::sub" not in names)
