"""Copies that write a tensor several times over (an expanded one made real): what reads them reads less without."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from warpline.replay.workbench import Workbench
from warpline.trace.columns import NONE, Bools, Int64s
from warpline.work import OpCall, work_of

LEAST_SHARE = 0.5
"""A kernel whose bytes take at least this share of its time under the roof is bound by them."""


class Expansions:
    """Copies of expanded tensors in a scene, and the ops that read them."""

    def __init__(self, bench: Workbench, copies: Int64s) -> None:
        self._bench, self._scene, self._copies = bench, bench.scene, copies

    def shorten_readers(self) -> None:
        """Kernels bound by the bytes of a copy take as much less time as the original has fewer."""
        bench, scene = self._bench, self._scene
        memory = scene.floors.memory_bytes_per_ns
        if memory is None:
            return
        for op, saved in self._saved_bytes().items():
            mine = np.flatnonzero((scene.op == op) & ~bench.gone)
            work = work_of(self._call(int(mine[0])))
            time = float(bench.graph.duration[mine].sum())
            if work is not None and work.bytes / memory >= LEAST_SHARE * time:
                bench.shorten(mine, bench.graph.duration[mine] * (1 - saved / work.bytes))

    def _saved_bytes(self) -> dict[int, float]:
        """For each op that reads such copies, the bytes that it need not read."""
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
        """The op that first takes a tensor of this size and type, after the copy on its stream and in its step."""
        scene = self._scene
        stream = self._streams[int(scene.graph.lane[copy])]
        for node in stream[np.searchsorted(stream, copy, side="right") :].tolist():
            if scene.step[node] != scene.step[copy]:
                break
            found = self._call(node).all_tensors()
            if any(tensor.stored_elements == elements and tensor.dtype == dtype for tensor in found):
                return int(scene.op[node])
        return NONE

    @cached_property
    def _streams(self) -> dict[int, Int64s]:
        """Kernels that stay and have an op, by stream."""
        scene = self._scene
        stays: Bools = (scene.kind == "kernel") & (scene.op != NONE) & ~self._bench.gone
        lanes = scene.graph.lane
        return {int(lane): np.flatnonzero(stays & (lanes == lane)) for lane in np.unique(lanes[self._copies])}

    def _call(self, node: int) -> OpCall:
        """The call of the op around a node."""
        return self._scene.op_calls.alone(int(self._scene.op[node]))
