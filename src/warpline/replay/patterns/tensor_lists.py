"""Loops over a list of tensors, such as a model's parameters: torch._foreach_ functions take the whole list."""

from __future__ import annotations

from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.patterns.loops import loops
from warpline.trace.arrays import NONE, Int64s
from warpline.work.parse import recorded_sizes

LONGEST_LIST = 30
"""Maximum length of a list of tensors whose shapes torch.profiler records."""
MIN_TENSORS = 12
"""Minimum length of the loop: other ops alternate only a few times, a model has more parameters."""
MIN_SHAPES = 2
"""A tensor of another shape cannot be the result of the previous iteration."""
IN_PLACE = (
    "aten::mul_",
    "aten::add_",
    "aten::sub_",
    "aten::div_",
    "aten::addcmul_",
    "aten::addcdiv_",
    "aten::lerp_",
    "aten::copy_",
    "aten::zero_",
    "aten::fill_",
    "aten::clamp_",
    "aten::sqrt_",
    "aten::neg_",
    "aten::sign_",
)
NORMS = ("aten::norm", "aten::linalg_vector_norm")
OTHERS = (
    "aten::mul",
    "aten::add",
    "aten::sub",
    "aten::div",
    "aten::sqrt",
    "aten::pow",
    "aten::sign",
    "aten::lerp",
    "aten::addcmul",
    "aten::addcdiv",
    "aten::rsqrt",
    "aten::reciprocal",
    "aten::abs",
    "aten::neg",
    "aten::maximum",
)
"""Ops that have a torch._foreach_ version."""


def lists_of_tensors(labelled: LabelledGraph, nodes: Int64s, names: Int64s) -> list[Int64s]:
    """Runs of equal groups of such ops, each on tensors of one shape, which changes between iterations."""
    return [iterations for iterations in loops(nodes, names, labelled.step) if _is_over_a_list(labelled, iterations)]


def _is_over_a_list(labelled: LabelledGraph, iterations: Int64s) -> bool:
    roots = labelled.root_op[iterations[0]]
    if len(iterations) < MIN_TENSORS or NONE in roots:
        return False
    names = labelled.trace.ops.name[roots]
    if not names.equal(*IN_PLACE, *NORMS).any() or not names.equal(*IN_PLACE, *NORMS, *OTHERS).all():
        return False
    shapes = shapes_of_iterations(labelled, iterations)
    return all(len(each) == 1 for each in shapes) and len(set.union(*shapes)) >= MIN_SHAPES


def shapes_of_iterations(labelled: LabelledGraph, iterations: Int64s) -> list[set[tuple[int, ...]]]:
    """The distinct input shapes of the ops of each iteration, without numbers."""
    texts = labelled.op_shapes.texts
    return [{sizes for text in texts[nodes] for sizes in recorded_sizes(text) if sizes} for nodes in iterations]
