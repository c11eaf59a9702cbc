"""Copies on the device: those that the program asks for, and those that an op makes for its own kernel."""

from __future__ import annotations

import numpy as np

from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.patterns.casts import keeps_type, plain_copies
from warpline.trace.arrays import NONE, Bools, Int64s

UPDATING = tuple(
    f"aten::{name}"
    for name in (
        *("index_copy", "index_add", "index_fill", "index_put", "index_reduce"),
        *("scatter", "scatter_add", "scatter_reduce", "slice_scatter", "select_scatter", "diagonal_scatter"),
        *("masked_fill", "masked_scatter"),
    )
)
"""Ops that change a part of a tensor and return a new one: they copy all of it first. Their forms with an underscore
write in place."""
COPYING = ("aten::copy_", "aten::clone", "aten::contiguous", "aten::repeat", "aten::_to_copy", "aten::to")
"""Ops that launch a kernel only to copy."""
OP_OF_TORCH = "aten::"


def copies_asked_for(labelled: LabelledGraph) -> Bools:
    """GPU operations that copy because the program says so: clone, contiguous, repeat, `to` that keeps the type, and
    updates of a part of a tensor. Autograd's copies and those that an op makes for its own kernel are left out."""
    copying = labelled.under_op("aten::clone", "aten::contiguous", "aten::repeat") | labelled.once(keeps_type)
    copying = copying | (labelled.under_op(*UPDATING) & labelled.once(plain_copies))
    return copying & ~labelled.of_autograd & ~labelled.once(made_for_a_kernel)


def made_for_a_kernel(labelled: LabelledGraph) -> Bools:
    """Copies within an op of torch that computes something, too: layer_norm makes a strided input contiguous and
    convolutions change the layout, because their kernels read no other."""
    copies = labelled.once(plain_copies) | labelled.op_name.equal(*COPYING)
    own = labelled.trace.ops.name.where(lambda name: name.startswith(OP_OF_TORCH) and name not in UPDATING)
    around = np.zeros(len(labelled.trace.ops) + 1, bool)
    computing = labelled.work[labelled.is_kernel[labelled.work] & ~copies[labelled.work]]
    for ops in _levels(labelled, labelled.op[computing]):
        around[ops] = True
    around &= np.append(own, False)
    result = np.zeros(len(labelled.graph), bool)
    nodes = np.flatnonzero(copies)
    for ops in _levels(labelled, labelled.op[nodes]):
        result[nodes] |= around[ops]
    return result


def _levels(labelled: LabelledGraph, ops: Int64s) -> list[Int64s]:
    """These ops (rows of `ops`, NONE for none), then those around them, level by level."""
    parents, levels = np.append(labelled.trace.ops.parent, NONE), []
    while (ops != NONE).any():
        levels.append(ops)
        ops = parents[ops]
    return levels
