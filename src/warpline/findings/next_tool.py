"""Which tool next: for each top kernel, whether the timeline explains its time or its counters are needed: those of
Nsight Compute, or of rocprof-compute on AMD."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from msgspec import Struct

from warpline.dive.inside_kernels import ONLY_LESS_WORK, Floors, InsideKernel, InsideKernels, inside_kernels
from warpline.dive.ncu_plan import by_hand
from warpline.estimate import NOTICEABLE_GAIN
from warpline.findings.judge import Judgement
from warpline.hardware.vocabulary import Platform, in_words_of
from warpline.trace.trace import Trace

LISTED = 5
MOSTLY = 0.5
"""Share of a kernel's launches that a fix must change to explain it."""
_ASKS_FOR_COUNTERS = "at_roofline"
"""The fix that only says how far kernels are from their roofline."""


class NextTool(Struct, frozen=True):
    """One kernel, and the tool that says more about it."""

    kernel: InsideKernel
    tool: Literal["timeline", "ncu", "rocprof-compute"]
    why: str
    command: str
    """For ncu: its command line, with the program left to fill in."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "kernel": self.kernel.name,
            "op": self.kernel.op or None,
            "shapes": self.kernel.shapes or None,
            "grid": self.kernel.grid,
            "block": self.kernel.block,
            "time_ns": round(self.kernel.time_ns),
            "recoverable_ns": round(self.kernel.recoverable_ns) if self.kernel.floor_ns is not None else None,
            "tool": self.tool,
            "why": self.why,
            "command": self.command or None,
        }


def next_tools(trace: Trace, judgement: Judgement | None) -> list[NextTool]:
    """The kernels with the longest time, in the steps that were replayed, each with the tool that explains it."""
    found = inside_kernels(judgement.evidence.trace if judgement else trace, _floors(judgement))
    longest = sorted(found.kernels, key=lambda kernel: -kernel.time_ns)[:LISTED]
    fixes = _changed_rows(judgement) if judgement is not None else {}
    platform = judgement.evidence.platform if judgement is not None else "cuda"
    return [_tool(found, kernel, fixes, platform) for kernel in longest]


def _tool(found: InsideKernels, kernel: InsideKernel, fixes: dict[str, set[int]], platform: Platform) -> NextTool:
    changing = (
        fix for fix, rows in fixes.items() if sum(map(rows.__contains__, kernel.rows)) > MOSTLY * len(kernel.rows)
    )
    fix = next(changing, None)
    if kernel.answer == "timeline":
        # A fix may give it another roofline, as tensor cores have.
        why = kernel.why.replace(ONLY_LESS_WORK, f"{fix} gives it another one") if fix else kernel.why
        return NextTool(kernel, "timeline", in_words_of(platform, why), "")
    if fix is not None:
        return NextTool(kernel, "timeline", f"{fix} changes it: make that fix first", "")
    if platform == "hip":
        return NextTool(kernel, "rocprof-compute", kernel.why, "")
    return NextTool(kernel, "ncu", kernel.why, by_hand(found, kernel))


def _floors(judgement: Judgement | None) -> Floors:
    """The floors that the replay has computed already; without it none, since they take as long as the rest."""
    if judgement is None:
        return {}
    least = judgement.evidence.labelled.floors.least_ns()
    return {int(row): (float(least[row]), "") for row in np.flatnonzero(least)}


def _changed_rows(judgement: Judgement) -> dict[str, set[int]]:
    """By fix of a finding that gains: the rows of `gpu` that it changes."""
    evidence = judgement.evidence
    changed: dict[str, set[int]] = {}
    for finding in judgement.findings:
        if finding.cause == "kernel" and finding.fix != _ASKS_FOR_COUNTERS and finding.gain.expected >= NOTICEABLE_GAIN:
            nodes = evidence.changed(finding.fix).work
            changed[finding.fix] = set(evidence.labelled.graph.row[nodes].tolist())
    return changed
