"""Copies that materialise an expanded tensor: without them, the kernels that read the copy read fewer bytes."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from warpline.replay.graph_edit import GraphEdit
from warpline.trace.arrays import NONE, Int64s, grouped
from warpline.work import OpCall, work_of

MIN_MEMORY_SHARE = 0.5
"""A kernel whose bytes take at least this share of its roofline time is memory-bound."""


class Expansions:
    """Copies of expanded tensors in a graph, and the ops that read them."""

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
