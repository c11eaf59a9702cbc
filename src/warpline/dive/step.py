"""Carries a kernel's gain to the step of a trace: the replay shortens its launches, and everything that waits moves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from warpline.dive.match_launches import Match
from warpline.dive.model import KernelDive, StepGain
from warpline.estimate import Estimate
from warpline.replay.costs.cost import OPTIMISTIC, PESSIMISTIC
from warpline.replay.fix import Apply
from warpline.replay.graph_edit import GraphEdit
from warpline.replay.whatif import WhatIf
from warpline.trace.trace import Trace

NOT_IN_TRACE = "the trace has no launch of this kernel with this grid and block"
NO_GAIN = 1.005


class FasterKernel(Struct, frozen=True):
    """A what-if: the launches of one kernel take the time that its reason predicts."""

    name: str
    rows: tuple[int, ...]
    gain: Estimate
    summary: str = "The kernel's launches are shorter by the predicted gain."
    assumptions: tuple[str, ...] = (
        "Every launch of this kernel with this geometry gains as much as the profiled one.",
    )

    @property
    def apply(self) -> Apply:
        """Divides the durations by the gain of the case."""

        def shorten(edit: GraphEdit, case: int) -> int:
            labelled = edit.labelled
            nodes = np.flatnonzero(labelled.is_work & np.isin(labelled.graph.row, np.array(self.rows)) & ~edit.gone)
            gain = {OPTIMISTIC: self.gain.high, PESSIMISTIC: self.gain.low}.get(case, self.gain.expected)
            edit.shorten(nodes, edit.graph.duration[nodes] / max(gain, 1.0))
            return len(nodes)

        return shorten


def with_step(found: Sequence[KernelDive], matches: Sequence[Match | None], trace: Trace) -> tuple[KernelDive, ...]:
    """The kernels with the gain of the step, where the trace has them and there is one."""
    fixes: dict[str, FasterKernel] = {}
    for number, (one, match) in enumerate(zip(found, matches, strict=True)):
        if match is not None and one.gain.high > NO_GAIN:
            fixes[f"kernel_{number}"] = FasterKernel(f"kernel_{number}", match.rows, one.gain)
    question = WhatIf(trace, fixes) if fixes else None
    carried = []
    for number, (one, match) in enumerate(zip(found, matches, strict=True)):
        if match is None:
            carried.append(replace(one, step_note=NOT_IN_TRACE))
        elif question is None or f"kernel_{number}" not in fixes:
            carried.append(replace(one, match=match, step_note="nothing to gain"))
        else:
            carried.append(replace(one, match=match, step=_step(question, f"kernel_{number}", match)))
    return tuple(carried)


def _step(question: WhatIf, name: str, match: Match) -> StepGain:
    """The replayed step; its range is that of the kernel's gain, in the replay itself."""
    prediction = question.ask(name)
    old, scale = prediction.old_step_ns, prediction.new_step_ns.expected / max(prediction.replayed_ns.expected, 1.0)
    new = Estimate(*(scale * value for value in _triple(prediction.replayed_ns)))
    new = Estimate(new.low, new.expected, min(max(new.high, new.expected), max(old.expected, new.expected)))
    gain = Estimate(*(max(1.0, old.expected / value) for value in (new.high, new.expected, new.low)))
    steps = max(question.replay.marks.count, 1)
    return StepGain(len(match.rows) / steps, old, new, gain)


def _triple(value: Estimate) -> tuple[float, float, float]:
    return value.low, value.expected, value.high
