"""What a dive finds: for each kernel the tree of measured values, one reason, and what its removal would gain."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, Literal

import polars as pl
from msgspec import Struct, to_builtins

from warpline.dive.match_launches import Match
from warpline.estimate import Estimate
from warpline.notebook import ShownAsCard
from warpline.sources.health import HealthEntry
from warpline.sources.ncu.model import KernelReport
from warpline.units import several

SCHEMA = "warpline.dive/1"
Bound = Literal["compute", "memory", "latency", "unknown"]

REASONS = (
    "healthy", "uncoalesced", "bank_conflicts", "low_occupancy", "spills", "atomics", "fp64", "divergence",
    "small_grid", "tail", "imbalance", "l2_misses", "tensor_cores_unused", "instruction_bound", "latency",
    "memory_bandwidth", "compute_peak",
)  # fmt: skip
"""The contract's words."""
NOT_KNOWN = "unknown"
"""The reason of a kernel whose report lacks the counters that would tell."""


class Node(Struct, frozen=True):
    """One question of the tree."""

    question: str
    metric: str
    """The metric's name in Nsight Compute, or how it is worked out from several."""
    value: float | None
    """None where the report does not have it."""
    unit: str
    answer: str


class Branch(Struct, frozen=True):
    """A group of questions."""

    name: str
    title: str
    nodes: tuple[Node, ...]


class FoundReason(Struct, frozen=True):
    """A reason that is true of a kernel."""

    reason: str
    sentence: str
    """What is wrong, with the numbers."""
    gain: Estimate
    """Old time over new time of the kernel."""
    how: str
    evidence: tuple[str, ...] = ()
    """The names of the metrics that show it."""


class RooflineLevel(Struct, frozen=True):
    """One memory level of the hierarchical roofline."""

    name: str
    bytes_moved: float
    flops_per_byte: float | None
    """None where the report has no FLOPs."""
    share_of_peak: float
    """Of the level's peak bandwidth, 0 to 1."""


class HotLine(Struct, frozen=True):
    """A line of source where warps wait most."""

    file: str
    line: int
    text: str
    share: float
    """Of all samples of the kernel."""
    stall: str
    """The most frequent wait there, in words."""
    sass: str = ""
    """The instruction with most samples."""


class StepGain(Struct, frozen=True):
    """The kernel's gain carried to the step of a trace."""

    launches: float
    """Launches in a step."""
    old_step_ns: Estimate
    new_step_ns: Estimate
    gain: Estimate

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "launches": self.launches,
            "old_step_ns": to_builtins(self.old_step_ns.rounded()),
            "new_step_ns": to_builtins(self.new_step_ns.rounded()),
            "gain": to_builtins(self.gain.rounded(4)),
        }


class KernelDive(Struct, frozen=True):
    """What is known of one kernel.

    >>> found = warpline.dive("report.ncu-rep").found[0]
    >>> found.reason, found.sentence, found.gain.expected
    """

    kernel: KernelReport
    bound: Bound
    limiter: str
    limiter_pct: float | None
    reason: str
    sentence: str
    gain: Estimate
    cap: float
    """The largest gain that physics allows: old time over the time that the useful work needs."""
    how: str
    tree: tuple[Branch, ...]
    evidence: tuple[str, ...] = ()
    """The metrics that show the reason."""
    also: tuple[FoundReason, ...] = ()
    """Other reasons that are true and gain less."""
    roofline: tuple[RooflineLevel, ...] = ()
    hot_lines: tuple[HotLine, ...] = ()
    missing: tuple[str, ...] = ()
    """Sections that would answer the open questions."""
    step: StepGain | None = None
    step_note: str = ""
    """Why there is no step, where a trace was given."""
    match: Match | None = None
    """Its launches in that trace."""

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes, in order."""
        return tuple(node for branch in self.tree for node in branch.nodes)

    def to_dict(self) -> dict[str, Any]:
        """As in the contract."""
        kernel = self.kernel
        answer: dict[str, Any] = {
            "name": kernel.name,
            "launch": kernel.launch,
            "device": kernel.device,
            "duration_ns": round(kernel.duration_ns)
            if kernel.duration_ns and math.isfinite(kernel.duration_ns)
            else None,
            "bound": self.bound,
            "limiter": self.limiter,
            "limiter_pct": self.limiter_pct,
            "reason": self.reason,
            "sentence": self.sentence,
            "tree": to_builtins(self.nodes),
            "gain": to_builtins(self.gain.rounded(4)),
            "cap": round(self.cap, 4),
            "how": self.how,
            "evidence": list(self.evidence),
            "also": [
                {
                    "reason": one.reason,
                    "sentence": one.sentence,
                    "gain": to_builtins(one.gain.rounded(4)),
                    "how": one.how,
                }
                for one in self.also
            ],
            "roofline": [
                {
                    "level": level.name,
                    "bytes": round(level.bytes_moved),
                    "flops_per_byte": level.flops_per_byte,
                    "share_of_peak": level.share_of_peak,
                }
                for level in self.roofline
            ],
            "hot_lines": [
                {"file": hot.file, "line": hot.line, "text": hot.text, "share": hot.share, "stall": hot.stall}
                for hot in self.hot_lines
            ],
            "missing_sections": list(self.missing),
        }
        if self.step is not None:
            answer["step"] = self.step.to_dict()
        return answer


class Dive(ShownAsCard, Struct, frozen=True):
    """The answer to `warpline dive REPORT`.

    >>> dive = warpline.dive("report.ncu-rep")
    >>> dive.kernels.select("name", "reason", "gain")
    """

    path: str
    found: tuple[KernelDive, ...]
    """Each profiled launch, in the report's order."""
    health: tuple[HealthEntry, ...] = ()

    @property
    def kernels(self) -> pl.DataFrame:
        """One row for each profiled launch."""
        rows = [_row(one) for one in self.found]
        return pl.DataFrame(rows, schema=_FRAME)

    def to_dict(self) -> dict[str, Any]:
        """The JSON contract `warpline.dive/1`."""
        return {
            "schema": SCHEMA,
            "report": self.path,
            "health": to_builtins(self.health),
            "kernels": [one.to_dict() for one in self.found],
        }

    def __repr__(self) -> str:
        reasons = Counter(one.reason for one in self.found)
        counted = ", ".join(f"{reason} {count}" for reason, count in reasons.most_common())
        return f"<Dive {self.path}: {several(len(self.found), 'kernel')}: {counted}>"


_FRAME = {
    "launch": pl.Int64,
    "name": pl.String,
    "function": pl.String,
    "device": pl.String,
    "grid": pl.String,
    "block": pl.String,
    "duration_ns": pl.Float64,
    "bound": pl.String,
    "limiter": pl.String,
    "limiter_pct": pl.Float64,
    "reason": pl.String,
    "gain_low": pl.Float64,
    "gain": pl.Float64,
    "gain_high": pl.Float64,
    "cap": pl.Float64,
    "sentence": pl.String,
    "how": pl.String,
}


def _row(one: KernelDive) -> dict[str, Any]:
    kernel = one.kernel
    return {
        "launch": kernel.launch,
        "name": kernel.name,
        "function": kernel.function,
        "device": kernel.device,
        "grid": None if kernel.grid is None else "×".join(map(str, kernel.grid)),
        "block": None if kernel.block is None else "×".join(map(str, kernel.block)),
        "duration_ns": kernel.duration_ns,
        "bound": one.bound,
        "limiter": one.limiter,
        "limiter_pct": one.limiter_pct,
        "reason": one.reason,
        "gain_low": one.gain.low,
        "gain": one.gain.expected,
        "gain_high": one.gain.high,
        "cap": one.cap,
        "sentence": one.sentence,
        "how": one.how,
    }
