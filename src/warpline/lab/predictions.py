"""What the replay of one recording promises for changes that have not been made yet."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from msgspec import Struct

from warpline.fixes.registry import all_fixes
from warpline.lab.model import LabRange
from warpline.replay.bounds import DeviceWork, bounded
from warpline.replay.fix import Apply, GraphFix
from warpline.replay.graph_edit import GraphEdit
from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.representative_steps import steps_to_judge
from warpline.replay.whatif import WhatIf
from warpline.trace.arrays import Int64s
from warpline.trace.open import open_trace

SILU = "silu"


class LayerFix(Struct, frozen=True):
    """A change of the experiment's own layer, which no other program has."""

    name: str
    summary: str
    assumptions: tuple[str, ...]
    apply: Apply


def _silu_kernels(labelled: LabelledGraph) -> Int64s:
    return np.flatnonzero(labelled.is_kernel & labelled.in_steps & labelled.name.like(SILU))


def _fuse_silu(edit: GraphEdit, case: int) -> int:
    """The fused kernel reads and writes as much as the mul alone, so the SiLU kernel goes with its launch."""
    gone = _silu_kernels(edit.labelled)
    edit.remove_work(gone)
    return len(gone)


def _join_matmuls(edit: GraphEdit, case: int) -> int:
    """The two matmuls before each SiLU become one, which takes as long as both: it has the FLOPs and bytes of both."""
    labelled, changed = edit.labelled, []
    for node in _silu_kernels(labelled).tolist():
        lane = labelled.work_of_lane[int(edit.graph.lane[node])]
        place = int(np.searchsorted(lane, node))
        if place < 2:
            continue
        gate, up = (int(one) for one in lane[place - 2 : place])
        edit.graph.duration[gate] += edit.graph.duration[up]
        changed.append(up)
    edit.remove_work(np.array(changed, np.int64))
    return len(changed)


OWN_FIXES = (
    LayerFix(
        "fused_silu_mul",
        "SiLU and mul are one kernel.",
        ("The fused kernel takes as long as the mul did: it reads and writes the same bytes.",),
        _fuse_silu,
    ),
    LayerFix(
        "one_matmul",
        "Gate and up are one matmul.",
        ("It takes as long as the two did: it has their FLOPs and their bytes.",),
        _join_matmuls,
    ),
)


class Forecast:
    """The recording of a first rung, replayed with the changes of the others."""

    def __init__(self, recording: Path) -> None:
        fixes: Mapping[str, GraphFix] = {**{fix.name: fix for fix in OWN_FIXES}, **all_fixes()}
        self._question = WhatIf(steps_to_judge(open_trace(recording)), fixes)

    def step_ns(self, *names: str) -> LabRange:
        """The step with these changes together, without a profiler; the step as it is if they change nothing."""
        step = self._question.bare.step_ns
        if names:
            least = DeviceWork(self._question).least_after(self._question.trial(*names), same_work=False)
            prediction = bounded(self._question.ask(*names), least)
            step = prediction.new_step_ns if prediction.applies else step
        return LabRange(step.low, step.expected, step.high)
