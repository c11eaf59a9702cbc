"""Copies on the device: those that the program asks for, and those that an op makes for its own kernel."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from warpline.replay.graph_edit import GraphEdit
from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.patterns.casts import keeps_type, plain_copies
from warpline.trace.arrays import NONE, Bools, Int64s, grouped
from warpline.trace.nesting import nearest_marked
from warpline.work import OpCall, work_of

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
MIN_MEMORY_SHARE = 0.5
"""A kernel whose bytes take at least this share of its roofline time is memory-bound."""


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
    computing = labelled.work[labelled.is_kernel[labelled.work] & ~copies[labelled.work]]
    within = nearest_marked(labelled.trace.ops.parent, own & (labelled.launches_within(computing) > 0)) != NONE
    return copies & np.append(within, False)[labelled.op]


class Expansions:
    """Copies that materialise an expanded tensor: without them, the kernels that read the copy read fewer bytes."""

    def __init__(self, edit: GraphEdit, copies: Int64s) -> None:
        self._edit, self._labelled, self._copies = edit, edit.labelled, copies

    def shorten_readers(self) -> None:
        """Shortens kernels that are bound by the bytes of a copy in proportion to the smaller original."""
        edit, labelled = self._edit, self._labelled
        memory = labelled.floors.memory_bytes_per_ns
        if memory is None:
            return
        for op, saved in self._saved_bytes().items():
            kernels = np.flatnonzero((labelled.op == op) & ~edit.gone)
            work = work_of(self._call(int(kernels[0])))
            time = float(edit.graph.duration[kernels].sum())
            if work is not None and work.bytes / memory >= MIN_MEMORY_SHARE * time:
                edit.shorten(kernels, edit.graph.duration[kernels] * (1 - saved / work.bytes))

    def _saved_bytes(self) -> dict[int, float]:
        """For each op that reads such copies, the bytes that it does not need to read."""
        saved: dict[int, float] = {}
        for copy in self._copies.tolist():
            source = self._call(copy).maybe_tensor(1)
            if source is None or not 0 < source.stored_elements < source.elements:
                continue
            reader = self._first_reader(copy, source.elements, source.dtype)
            if reader != NONE:
                fewer = (source.elements - source.stored_elements) * source.item_bytes
                saved[reader] = saved.get(reader, 0.0) + fewer
        return saved

    def _first_reader(self, copy: int, elements: int, dtype: str) -> int:
        """The first op after the copy, on its stream and in its step, that takes a tensor of this size and type."""
        labelled = self._labelled
        stream = self._streams[int(labelled.graph.lane[copy])]
        for node in stream[np.searchsorted(stream, copy, side="right") :].tolist():
            if labelled.step[node] != labelled.step[copy]:
                break
            found = self._call(node).all_tensors()
            if any(tensor.stored_elements == elements and tensor.dtype == dtype for tensor in found):
                return int(labelled.op[node])
        return NONE

    @cached_property
    def _streams(self) -> dict[int, Int64s]:
        """Remaining kernels that have an op, by stream."""
        labelled = self._labelled
        stays = labelled.is_kernel & (labelled.op != NONE) & ~self._edit.gone
        lanes, nothing = labelled.graph.lane, np.empty(0, np.int64)
        remaining = dict(grouped(np.flatnonzero(stays), lanes[stays]))
        return {lane: remaining.get(lane, nothing) for lane in np.unique(lanes[self._copies]).tolist()}

    def _call(self, node: int) -> OpCall:
        """The call of the op around a node."""
        return self._labelled.op_calls.alone(int(self._labelled.op[node]))
