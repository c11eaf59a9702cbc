"""Tensors that a program repeatedly creates on the device from Python numbers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from msgspec import Struct

from warpline.replay.graph_edit import GraphEdit
from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.patterns.copies import SMALL_COPY_BYTES
from warpline.trace.arrays import NONE, Int64s


class TensorFromNumbers(Struct, frozen=True):
    """A tensor created from Python numbers: its copy to the device, and when the thread created it."""

    copy: int
    thread: int
    spans: tuple[tuple[int, int], ...]
    """One pass over the numbers, the allocation, another pass, the rest."""


def created_again(labelled: LabelledGraph) -> list[TensorFromNumbers]:
    """Tensors created by `torch.tensor([…], device="cuda")` or `x[[1, 2]]`, except the first of each size in a
    step, which may be new."""
    small = labelled.is_copy & labelled.copy_kind.equal("HtoD") & (labelled.bytes <= SMALL_COPY_BYTES)
    copies = np.flatnonzero(small & labelled.source_memory.equal("Pageable") & labelled.in_steps)
    seen: set[tuple[int, int]] = set()
    again = []
    for tensor in created_from_numbers(labelled, copies):
        key = int(labelled.step[tensor.copy]), int(labelled.bytes[tensor.copy])
        if key in seen:
            again.append(tensor)
        seen.add(key)
    return again


def created_from_numbers(labelled: LabelledGraph, copies: Int64s) -> Iterator[TensorFromNumbers]:
    """The copies that torch makes to create a tensor from numbers: host allocation, copy, new tensor."""
    outer = np.flatnonzero(labelled.trace.ops.depth == 0)  # by thread and start
    ops = labelled.trace.ops[outer]
    names, begin, end, thread = ops.name.texts.tolist(), ops.start_ns, ops.end_ns, ops.thread
    place = np.full(len(labelled.trace.ops) + 1, NONE, np.int64)
    place[outer] = np.arange(len(outer))
    for copy in copies.tolist():
        at = int(place[labelled.root_op[copy]])
        if at < 1 or names[at - 1] != "aten::empty" or names[at + 1 : at + 2] != ["aten::lift_fresh"]:
            continue
        if not thread[at - 1] == thread[at] == thread[at + 1]:
            continue
        # torch reads a list once for its shape and type and once for its values, in about the same time.
        first = int(begin[at - 1]) - int(begin[at] - end[at - 1])
        if at > 1 and thread[at - 2] == thread[at]:
            first = max(first, int(end[at - 2]))
        cuts = [first, int(begin[at - 1]), int(end[at - 1]), int(begin[at]), int(end[at + 1])]
        yield TensorFromNumbers(copy, int(thread[at]), tuple(pairwise(cuts)))


def remove_creation(edit: GraphEdit, tensors: list[TensorFromNumbers]) -> None:
    """Removes the creation of these tensors: copies, calls, waits, and the host time of lists and ops."""
    if not tensors:
        return
    edit.remove_work_only(np.array([one.copy for one in tensors], np.int64))
    threads = np.tile(np.array([one.thread for one in tensors], np.int64), 2)
    # One row of starts and one of ends for each of the four spans.
    walk, memory, again, rest = np.array([one.spans for one in tensors], np.int64).transpose(1, 2, 0)
    # Reading a list costs what was recorded: nothing else is recorded meanwhile.
    starts, ends = np.hstack([walk, again])
    edit.remove_unprofiled_spans(starts, ends, threads)
    starts, ends = np.hstack([memory, rest])
    edit.remove_spans(starts, ends, threads)
