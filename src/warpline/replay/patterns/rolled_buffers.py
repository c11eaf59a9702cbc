"""Buffers that are moved as a whole in every step, to make room for a few new values at one end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from math import prod

import numpy as np

from warpline.replay.labelled_graph import LabelledGraph
from warpline.trace.arrays import NONE, Bools, Int64s
from warpline.work.parse import json_list, sizes_of

Shape = tuple[int, ...]

ROLL = "aten::roll"
ROLL_KERNEL = "roll_cuda_kernel"
VIEWS = ("aten::select", "aten::slice", "aten::narrow")
WRITES_PART = ("aten::index_put_", "aten::_index_put_impl_", "aten::index_copy_")
NEAR = 6
"""The new values are written so many ops after the move at the latest: two views for each dimension, and the copy."""
NEXT_WORK = 2
"""The same in GPU operations, where no ops were recorded."""
MOST_NEW = 0.5
"""Part of the buffer that may be new; a larger part is another use of a roll."""
MOST_NEW_TIME = 0.1
"""The same as a share of the move's time, where no shapes were recorded."""


def shifts(labelled: LabelledGraph) -> Bools:
    """GPU operations that move a whole buffer to make room for new values: `torch.roll`, or a shifted slice that is
    cloned and copied back, before a small copy into the same buffer. A ring moves nothing. Rolls after which nothing
    is written, as between the windows of a network, compute something."""
    if not len(labelled.trace.ops):
        return _before_small_copies(labelled)
    rows = [row for ops in _outer_ops(labelled) for row in _moves(labelled, ops)]
    return np.isin(labelled.root_op, np.array(rows, np.int64)) & labelled.is_work & ~labelled.of_autograd


def _outer_ops(labelled: LabelledGraph) -> Iterator[Int64s]:
    """The outermost ops of each thread that could have a part in it, in order."""
    ops = labelled.trace.ops
    named = labelled.ops_named(ROLL, "aten::clone", "aten::copy_", *VIEWS, *WRITES_PART)
    outer = named[labelled.roots[named] == named]
    outer = outer[np.argsort(ops.start_ns[outer], kind="stable")]
    for thread in np.unique(ops.thread[outer]).tolist():
        yield outer[ops.thread[outer] == thread]


def _moves(labelled: LabelledGraph, ops: Int64s) -> Iterator[int]:
    """Rows of the ops that move a buffer."""
    names, shapes = labelled.trace.ops.name.texts, labelled.trace.ops.shapes
    for place, row in enumerate(ops.tolist()):
        if names[row] not in (ROLL, "aten::clone"):
            continue
        following = ops[place + 1 : place + 1 + NEAR].tolist()
        nearby = [(int(one), str(names[one]), _first_shape(shapes.text(one))) for one in following]
        whole = _first_shape(shapes.text(row))
        if whole is None:
            continue
        if names[row] == ROLL:
            if _is_written_in_part(nearby, whole):
                yield row
        else:
            back = _copied_back(nearby, whole)
            if back is not None:
                yield from (row, back)


@lru_cache(maxsize=10_000)
def _first_shape(shapes: str | None) -> Shape | None:
    """The shape of an op's first input, of its recorded shapes."""
    first = json_list(shapes or "")[:1]
    return sizes_of(first[0]) if first else None


Nearby = Sequence[tuple[int, str, Shape | None]]


def _is_written_in_part(nearby: Nearby, whole: Shape) -> bool:
    """Whether a small part of a tensor of that shape is written: through a view of it, or by its index."""
    in_view = False
    for _, name, shape in nearby:
        if name == ROLL:
            return False
        if shape == whole and name in WRITES_PART:
            return True
        in_view |= shape == whole and name in VIEWS
        if name == "aten::copy_" and in_view and shape is not None:
            return prod(shape) <= MOST_NEW * prod(whole)
    return False


def _copied_back(nearby: Nearby, part: Shape) -> int | None:
    """The copy that puts a cloned slice back into its buffer, shifted, if new values follow it."""
    for place, ((_, view, whole), (copy, name, shape)) in enumerate(pairwise(nearby), 2):
        if view in VIEWS and name == "aten::copy_" and shape == part and whole is not None and _is_slice(part, whole):
            return copy if _is_written_in_part(nearby[place:], whole) else None
    return None


def _is_slice(part: Shape, whole: Shape) -> bool:
    """Whether a part is the most of a tensor, along one dimension."""
    if len(part) != len(whole) or not prod(whole) > prod(part) > MOST_NEW * prod(whole):
        return False
    return sum(one != other for one, other in zip(part, whole, strict=True)) == 1


def _before_small_copies(labelled: LabelledGraph) -> Bools:
    """Without ops: kernels that roll, before a much shorter copy within the device."""
    result, length = np.zeros(len(labelled.graph), bool), labelled.graph.measured_end - labelled.graph.measured_start
    rolls = labelled.name.where(lambda name: ROLL_KERNEL in name)
    inside = labelled.copy_kind.equal("DtoD")
    for lane in np.unique(labelled.graph.lane[rolls]).tolist():
        nodes = labelled.work_of_lane[lane]
        for place in np.flatnonzero(rolls[nodes]).tolist():
            after = nodes[place + 1 : place + 1 + NEXT_WORK]
            after = after[inside[after] & (labelled.step[after] != NONE)]
            result[nodes[place]] = (length[after] <= MOST_NEW_TIME * length[nodes[place]]).any()
    return result
