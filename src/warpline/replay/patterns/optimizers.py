"""Updates of a model's parameters: by torch.optim, or hand-written."""

from __future__ import annotations

import re

import numpy as np

from warpline.library_names import OPTIMIZER_RANGE
from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.patterns.grids import Grids
from warpline.replay.patterns.loops import MIN_REPEATS, loops
from warpline.replay.patterns.tensor_lists import IN_PLACE, NORMS, OTHERS, shapes_of_iterations
from warpline.trace.arrays import NONE, Bools, Int64s, grouped
from warpline.trace.schema import Ops
from warpline.work.parse import json_list

UPDATING = (*IN_PLACE, *NORMS, *OTHERS, "aten::to", "aten::square", "aten::clamp")
"""Ops that parameter updates use."""
ROOTS = ("aten::sqrt", "aten::sqrt_", "aten::rsqrt", "aten::rsqrt_")
QUOTIENTS = ("aten::div", "aten::div_", "aten::addcdiv", "aten::addcdiv_", "aten::rsqrt", "aten::rsqrt_")
"""An update that divides by a square root is Adam or similar."""
KERNEL_ROOTS = ("sqrt", "rsqrt")
KERNEL_QUOTIENTS = ("addcdiv", "div", "rsqrt")
"""The same in the names of kernels, for a recording without ops."""
POWER = "pow"
"""Kernels of an update whose step count is on the device: its bias corrections are powers."""
ON_A_NUMBER = r"^\[\s*\[\s*\]"
"""The recorded shapes of an op on a scalar."""
FUSED_OP = re.compile(r"^aten::_fused_(adam|adamw|sgd|adagrad)_?$")
MANY_KERNELS = 12
"""An optimizer step with fewer kernels is already fused, or nearly so."""


def in_optimizer(labelled: LabelledGraph) -> Bools:
    """Nodes of parameter updates: by torch.optim, or hand-written."""
    ranges = labelled.within_ranges(OPTIMIZER_RANGE)
    return ranges | (_written_by_hand(labelled, ~ranges) if len(labelled.trace.ops) else _by_kernels(labelled, ~ranges))


def operations(labelled: LabelledGraph, kernels: Int64s) -> list[str]:
    """What the kernels of an update do, each once: as their ops say, or their names in a recording without ops."""
    if len(labelled.trace.ops):
        return [re.sub(r"^aten::(_foreach_)?|_$", "", name) for name in labelled.op_name[kernels].present()]
    return sorted({name.removesuffix("_scalar") for name in labelled.kernel_op[kernels].present()})


def updates_at_once(labelled: LabelledGraph) -> Bools:
    """Kernels of a fused optimizer (fused=True of torch.optim, apex, DeepSpeed), which updates in one pass."""
    fused = labelled.under_op_where(lambda name: FUSED_OP.match(name) is not None)
    return labelled.kernels("optimizer") | (fused & labelled.is_kernel)


def counted_on_the_host(labelled: LabelledGraph) -> Bools:
    """Nodes of updates that iterate over the parameters with host numbers that change in every step.

    Adam's bias corrections depend on its step count, so it cannot be captured unless that count is a tensor on the
    device. With all parameters in one list, capturable=True is enough.
    """
    inside = labelled.once(in_optimizer) & labelled.in_steps
    kernels = np.flatnonzero(inside & labelled.is_kernel)
    result = np.zeros(len(inside), bool)
    for step in np.unique(labelled.step[kernels]):
        of_step = kernels[labelled.step[kernels] == step]
        does = set(operations(labelled, of_step))
        on_device = labelled.op_shapes[of_step].like(ON_A_NUMBER).any()
        on_device |= POWER in does and not len(labelled.trace.ops)
        if does & set(KERNEL_ROOTS) and not on_device and not takes_lists(labelled, of_step):
            result |= inside & (labelled.step == step)
    return result


def takes_lists(labelled: LabelledGraph, kernels: Int64s) -> bool:
    """Whether most of these kernels process many tensors at once."""
    return int(labelled.name[kernels].like("multi_tensor").sum()) > len(kernels) // 2


def _written_by_hand(labelled: LabelledGraph, wanted: Bools) -> Bools:
    """Nodes between the first and the last op of each loop that updates parameters."""
    inside, moment = np.zeros(len(labelled.graph), bool), labelled.launch_moment
    kernels = np.flatnonzero(wanted & labelled.in_steps & labelled.is_kernel & (labelled.root_op != NONE))
    if not len(kernels):
        return inside
    ops = labelled.trace.ops
    trained = set(labelled.step[kernels[labelled.of_autograd[kernels]]].tolist())
    for _, nodes in grouped(kernels, labelled.graph.lane[kernels]):
        if len(nodes) < MIN_REPEATS:
            continue
        for iterations in loops(nodes, labelled.op_name.codes[nodes], labelled.step):
            roots = labelled.root_op[iterations]
            if iterations.size < MANY_KERNELS or not _updates(ops[roots[0]]):
                continue
            shapes = shapes_of_iterations(labelled, iterations)
            # Iterations of one shape may use the result of the previous one, as in a solver.
            different = len(set.union(*shapes)) > 1 or int(labelled.step[iterations[0, 0]]) in trained
            if different and all(len(each) <= 1 for each in shapes):
                inside |= (moment >= ops.start_ns[roots[0, 0]]) & (moment < ops.end_ns[roots[-1, -1]])
    return inside


def _by_kernels(labelled: LabelledGraph, wanted: Bools) -> Bools:
    """Nodes between the first and the last launch of each loop that divides by a square root, over parameters of
    several sizes: a recording without ops shows no gradient, and turns of one size may be a solver."""
    inside, moment = np.zeros(len(labelled.graph), bool), labelled.launch_moment
    does, single = labelled.kernel_op, labelled.kernels("elementwise")
    roots, quotients = does.equal(*KERNEL_ROOTS), does.equal(*KERNEL_QUOTIENTS)
    if not (roots & single).any() or not (quotients & single).any():
        return inside
    kernels = np.flatnonzero(wanted & labelled.in_steps & labelled.is_kernel)
    blocks = labelled.once(Grids).blocks
    for _, nodes in grouped(kernels, labelled.graph.lane[kernels]):
        for iterations in loops(nodes, does.codes[nodes], labelled.step) if len(nodes) >= MIN_REPEATS else ():
            divides = roots[iterations[0]].any() and quotients[iterations[0]].any() and single[iterations].all()
            sizes = np.unique(blocks[iterations[:, 0]])
            if iterations.size >= MANY_KERNELS and divides and len(sizes) > 1:
                inside |= (moment >= moment[iterations[0, 0]]) & (moment <= moment[iterations[-1, -1]])
    return inside


def _updates(ops: Ops) -> bool:
    """Whether these are the ops of an update: a quotient of averages, or a gradient step."""
    names = set(ops.name.texts.tolist())
    if not names <= set(UPDATING) or not names & set(IN_PLACE):
        return False
    if names & set(ROOTS) and names & set(QUOTIENTS):
        return True
    numbers = [str(number) for text in ops.concrete.texts for number in json_list(text)]
    downhill = "aten::add_" in names and any(number.startswith("-") for number in numbers)
    return downhill or ("aten::sub_" in names and "aten::mul" in names and "aten::sub" not in names)
