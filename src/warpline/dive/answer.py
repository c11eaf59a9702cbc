"""A dive from its files: reads the reports, walks the tree for each kernel, and carries the gains to a trace's step."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct
from msgspec.structs import astuple, replace

from warpline.analyses.roofline.pieces import GpuWork
from warpline.dive.match_launches import Match, match_launches
from warpline.dive.model import Dive, KernelDive, StepGain
from warpline.dive.tree import explain
from warpline.estimate import NOTICEABLE_GAIN, Estimate
from warpline.replay.costs.cost import OPTIMISTIC, PESSIMISTIC
from warpline.replay.fix import Apply
from warpline.replay.graph_edit import GraphEdit
from warpline.replay.whatif import WhatIf
from warpline.sources.health import HealthEntry
from warpline.sources.ncu import read_report
from warpline.sources.ncu.model import NcuReport
from warpline.trace.trace import Trace

NOT_IN_TRACE = "the trace has no launch of this kernel with this grid and block"


def dive_into(report: NcuReport, trace: Trace | None = None) -> Dive:
    """The answer for one report that has been read."""
    if trace is None:
        found = tuple(map(explain, report.kernels))
    else:
        matches = match_launches(report, trace)
        found = with_step(tuple(map(explain, report.kernels, needed_bytes(trace, matches))), matches, trace)
    return Dive(str(report.path), found, (*report.health, *_doubts(report)))


def dive_files(paths: Sequence[str | Path], trace: Trace | None = None, kernel: str | None = None) -> Dive:
    """The answer for one or several reports together; of the kernels with this text in their name, or all."""
    reports = [read_report(path) for path in paths]
    dives = [dive_into(report if kernel is None else report.only(kernel), trace) for report in reports]
    return Dive(
        ", ".join(one.path for one in dives),
        tuple(found for one in dives for found in one.found),
        tuple(entry for one in dives for entry in one.health),
    )


def _doubts(report: NcuReport) -> list[HealthEntry]:
    """What qualifies the answer: kernels that ncu replayed cold, counters that are missing."""
    blind = sum(not kernel.metrics for kernel in report.kernels)
    if not blind:
        return []
    message = f"Kernels without any counter: {blind:,} of {len(report.kernels):,}. Their reason is unknown."
    return [HealthEntry("no-counters", "warning", message)]


def needed_bytes(trace: Trace, matches: Sequence[Match | None]) -> list[float | None]:
    """For each match the bytes of its op, by its shapes: what DRAM moves beyond them was moved again.

    None where the op is unknown, estimated, or launches other kernels too.
    """
    gpu_work = GpuWork(trace)
    rows, is_kernel = gpu_work.rows, gpu_work.is_kernel
    known: dict[int, float] = {}
    for piece, work, _, _ in gpu_work.priced(None):
        places = np.array(piece.rows)
        kernels = places[is_kernel[places]]
        if len(kernels) == 1 and not work.estimate and work.bytes:
            known[int(rows[kernels[0]])] = float(work.bytes)
    return [
        None if match is None else next((known[row] for row in match.rows if row in known), None) for match in matches
    ]


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
    """The kernels with the gain of the step, where the trace has them and there is one.

    The replay shortens a kernel's launches, and everything that waits for them moves.
    """
    fixes: dict[str, FasterKernel] = {}
    for number, (one, match) in enumerate(zip(found, matches, strict=True)):
        if match is not None and one.gain.high > NOTICEABLE_GAIN:
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
    new = Estimate(*(scale * value for value in astuple(prediction.replayed_ns)))
    new = Estimate(new.low, new.expected, min(max(new.high, new.expected), max(old.expected, new.expected)))
    gain = Estimate(*(max(1.0, old.expected / value) for value in (new.high, new.expected, new.low)))
    steps = max(question.replay.marks.count, 1)
    return StepGain(len(match.rows) / steps, old, new, gain)
