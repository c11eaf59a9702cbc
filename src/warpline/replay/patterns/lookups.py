"""GPU activity that only computes a number for the CPU: it is removed with the wait for that number."""

from __future__ import annotations

import re

import numpy as np

from warpline.replay.graph_edit import NOTHING, GraphEdit
from warpline.replay.labelled_graph import LabelledGraph
from warpline.trace.arrays import NONE, Bools, Int64s

CONDITIONS = (
    *("aten::all", "aten::any", "aten::isclose", "aten::isin"),
    *("aten::eq", "aten::ne", "aten::lt", "aten::le", "aten::gt", "aten::ge"),
    *("aten::logical_and", "aten::logical_not", "aten::logical_or", "aten::logical_xor"),
    *("aten::bitwise_and", "aten::bitwise_not", "aten::bitwise_or", "aten::bitwise_xor"),
)
"""Ops that compute a condition. One byte of theirs that the CPU reads decides a branch of the program, and no kernel
takes it: without the wait nothing needs it. Left out with BOUNDS, 12 of the 14 recorded programs that the two touch are
predicted worse."""
CHECKS = ("aten::isnan", "aten::isinf", "aten::isfinite")
"""NaN checks are kept: their flags are read later."""
BOUNDS = ("aten::max", "aten::min", "aten::amax", "aten::amin", "aten::aminmax")
"""Reductions of integers to the one number that the CPU needs for a size, as the longest of some lengths: a program
that knows the size does without. Sums, counts and argmax are results, and so are floating-point numbers: they stay."""
NUMBER_BYTES = 8
INTEGERS = re.compile(r"<(?:unsigned |signed )?(?:long|int)\b")
"""Part of a kernel's name that says it works on integers."""
DIMENSION = r"\d"
"""Matches recorded shapes in which a tensor has dimensions."""


def looked_up(labelled: LabelledGraph, reads: Int64s) -> Int64s:
    """GPU activity that computes the numbers that these copies return to the CPU, if nothing else can use them."""
    numbers = reads[labelled.bytes[reads] <= NUMBER_BYTES]
    if not len(numbers):
        return NOTHING
    flags, bounds, scalars = labelled.under_op(*CONDITIONS), labelled.once(_bounds), labelled.once(_arithmetic)
    checks = labelled.under_op(*CHECKS)
    order = labelled.work[np.argsort(labelled.launch_moment[labelled.work], kind="stable")]
    place = np.zeros(len(labelled.graph), np.int64)
    place[order] = np.arange(len(order))
    thread = np.append(labelled.graph.lane, NONE)[labelled.call_of_work]
    found: list[int] = []
    for read in numbers.tolist():
        op, computing = NONE, list[int]()
        for at in range(int(place[read]) - 1, -1, -1):
            work = int(order[at])
            if labelled.step[work] != labelled.step[read] or thread[work] != thread[read]:
                break
            if checks[work]:
                computing.clear()
                break
            # One reduction leads to a number; arithmetic and conditions on it may follow.
            bound = bounds[work] and op in (NONE, labelled.op[work])
            if not (flags[work] if labelled.bytes[read] == 1 else bound or scalars[work]):
                break
            op = int(labelled.op[work]) if bound else op
            computing.append(work)
        found += computing
    return np.unique(np.array(found, np.int64))


def _bounds(labelled: LabelledGraph) -> Bools:
    """Maximum and minimum reductions of integers, with the other GPU activity of the same ops."""
    reductions = labelled.under_op(*BOUNDS)
    of_integers = reductions & labelled.is_kernel & labelled.name.where(_is_of_integers)
    return reductions & np.isin(labelled.op, labelled.op[of_integers])


def _arithmetic(labelled: LabelledGraph) -> Bools:
    """Elementwise integer kernels of one block whose ops have no tensor with known dimensions."""
    blocks = [labelled.work_number(f"grid_{axis}") for axis in "xyz"]
    single = labelled.kernels("elementwise") & (blocks[0] * blocks[1] * blocks[2] == 1)
    return single & labelled.name.where(_is_of_integers) & ~labelled.op_shapes.like(DIMENSION)


def _is_of_integers(kernel: str) -> bool:
    return INTEGERS.search(kernel) is not None


def remove_inner_ops(edit: GraphEdit, removed: Int64s) -> None:
    """Removes the host time of nested ops whose GPU activity is all removed, if the outer op stays."""
    labelled = edit.labelled
    parents = labelled.trace.ops.parent
    left = labelled.launches_within(labelled.work[~edit.gone[labelled.work]])
    empty = np.append((labelled.launches_within(labelled.work) > 0) & (left == 0), False)
    around = labelled.launches_within(removed) > 0
    # Outermost ops were removed with their GPU activity.
    inner = np.flatnonzero(around & empty[:-1] & (parents != NONE) & ~empty[parents])
    if len(inner):
        ops = labelled.trace.ops[inner]
        edit.remove_spans(ops.start_ns, ops.end_ns, ops.thread)
