"""The diagnosis of a trace: its health, where each device's time went, its steps and its costliest kernels.

`Diagnosis.to_dict` is the JSON contract `warpline.diagnosis/1`; other programs rely on its keys.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import polars as pl
from msgspec import Struct, to_builtins

from warpline.analyses.breakdown import DeviceTime, device_times
from warpline.analyses.cpu_time import CpuTime, cpu_time
from warpline.analyses.idle.gap_places import GapPlace, gap_places
from warpline.analyses.idle.gaps import Gaps, idle_gaps
from warpline.analyses.kernels import top_kernels
from warpline.analyses.launches import QueueDepth, launch_calls, queue_depth
from warpline.analyses.steps import step_times
from warpline.analyses.transfers import copies
from warpline.analyses.user_frames import UserFrames, second_pass_health
from warpline.errors import CannotAnswer
from warpline.notebook import ShownAsCard
from warpline.sanitise import sanitise
from warpline.sources.health import SEVERITIES, HealthEntry
from warpline.trace.trace import Trace
from warpline.units import speedup

if TYPE_CHECKING:
    from warpline.findings.audit import Objection
    from warpline.findings.judge import Judgement
    from warpline.findings.model import Finding, Verdict
    from warpline.findings.next_tool import NextTool
    from warpline.findings.plan import PlanStep

SCHEMA = "warpline.diagnosis/1"
LISTED_KERNELS = 20
MOST_CALLS = 100_000
"""Findings are computed by default up to this many API calls a step: replaying takes about 65 µs a call."""


class Diagnosis(ShownAsCard, Struct, frozen=True):
    """Everything that `warpline diagnose` reports.

    >>> diagnosis = warpline.diagnose("trace.json.gz")
    >>> diagnosis.verdict.sentence
    >>> diagnosis.findings[0].gain.expected
    >>> diagnosis.kernels
    """

    trace: Trace
    health: list[HealthEntry]
    devices: list[DeviceTime]
    gaps: list[Gaps]
    """Idle gaps of the same devices, by cause."""
    steps: pl.DataFrame
    kernels: pl.DataFrame
    launches: pl.DataFrame
    copies: pl.DataFrame
    syncs: pl.DataFrame
    """Places where the CPU waits, per step: the blocked time, and the time recoverable by not waiting."""
    gap_places: list[GapPlace]
    """What runs on the CPU while the busiest device is idle, by kind of gap."""
    queue: QueueDepth | None
    judgement: Judgement | None
    """Findings and verdict; None if nothing can be replayed, or replaying was turned off."""
    cpu: CpuTime | None
    """Where the CPU's time goes; None if the trace has GPU work."""
    next_tools: list[NextTool]
    """For each top kernel: whether the timeline explains it, or Nsight Compute is needed, with its command."""

    @property
    def verdict(self) -> Verdict | None:
        """The cause and what to fix first; None if the trace was not replayed."""
        return self.judgement.verdict if self.judgement else None

    @property
    def plan(self) -> list[PlanStep]:
        """The order in which fixes are best made, each on top of the last; the verdict names the first."""
        return self.judgement.plan if self.judgement else []

    @property
    def audit(self) -> list[Objection]:
        """What the trace contradicted, and was withdrawn or downgraded."""
        from warpline.findings.audit import audit_accounting  # noqa: PLC0415 - as the replay

        return [*(self.judgement.audit if self.judgement else []), *audit_accounting(self.devices, self.gaps)]

    @property
    def findings(self) -> list[Finding]:
        """What costs time, the largest gain first; empty if the trace was not replayed."""
        return self.judgement.findings if self.judgement else []

    def __repr__(self) -> str:
        verdict = self.verdict
        answer = "not replayed"
        if verdict is not None:
            answer = (
                f"{verdict.cause}, {verdict.fix} {speedup(verdict.gain.expected)}" if verdict.fix else verdict.cause
            )
        return sanitise(f"<Diagnosis {self.trace.file.name}: {answer}, findings: {len(self.findings)}>")

    @property
    def device_name(self) -> str | None:
        """Name of the first device that ran anything."""
        if not self.devices:
            return None
        devices = self.trace.devices
        names = devices.name[devices.device == self.devices[0].device]
        return next((str(name) for name in names if name), None)

    def _replay(self) -> dict[str, Any] | None:
        if self.judgement is None:
            return None
        question = self.judgement.evidence.question
        return {
            "measured_step_ns": round(question.replay.measured_step_ns),
            "replayed_step_ns": round(question.replay.replayed_step_ns),
            "error_pct": round(question.replay.error_pct, 3),
            "bare_step_ns": round(question.bare_step_ns.expected),
            "bare_step_range_ns": {"low": round(question.bare_step_ns.low), "high": round(question.bare_step_ns.high)},
            "bare_step_from": question.bare_step_from,
        }

    def to_dict(self) -> dict[str, Any]:
        """The diagnosis as a JSON object that follows the contract."""
        return {
            "schema": SCHEMA,
            "trace": {
                "source": self.trace.source,
                "device": self.device_name,
                "window_ns": self.trace.window.length_ns,
                "steps": len(self.steps),
                "step_ns": self.trace.step_ns,
                "health": [to_builtins(entry) for entry in self.health],
            },
            "devices": [_device(device, gaps.totals()) for device, gaps in zip(self.devices, self.gaps, strict=True)],
            "replay": self._replay(),
            "limits": [row.to_dict() for row in self.judgement.limits.rows] if self.judgement else [],
            "verdict": self.verdict.to_dict() if self.verdict else None,
            "plan": [step.to_dict() for step in self.plan],
            "findings": [finding.to_dict() for finding in self.findings],
            "audit": [objection.to_dict() for objection in self.audit],
            "steps": self.steps.to_dicts(),
            "kernels": self.kernels.to_dicts(),
            "next_tools": [tool.to_dict() for tool in self.next_tools],
            "launches": self.launches.to_dicts(),
            "copies": self.copies.to_dicts(),
            "syncs": self.syncs.to_dicts(),
            "gap_places": [to_builtins(place) for place in self.gap_places],
            "queue_depth": to_builtins(self.queue) if self.queue else None,
            "cpu": self.cpu.to_dict() if self.cpu else None,
        }


def _device(time: DeviceTime, idle: dict[str, int]) -> dict[str, Any]:
    return {
        "device": time.device,
        "window_ns": time.window_ns,
        "busy_ns": time.busy_ns,
        "idle_ns": time.idle_ns,
        "busy": {
            "compute_ns": time.compute_ns,
            "copy_ns": time.copy_ns,
            "comm_ns": time.comm_ns,
            "memset_ns": time.memset_ns,
        },
        "idle": {f"{cause}_ns": length for cause, length in idle.items()},
        "overlapped": {"comm_ns": time.overlapped_comm_ns, "copy_ns": time.overlapped_copy_ns},
    }


def diagnose(trace: Trace, why: bool | None = None) -> Diagnosis:
    """Diagnose the trace's window, or the chosen steps.

    `why` replays the trace for findings and a verdict; by default, if that takes a few seconds at most.
    """
    # Imported here: the replay loads only when it is needed, and never on one of two threads.
    from warpline.findings.next_tool import next_tools  # noqa: PLC0415
    from warpline.findings.sync_places import sync_places  # noqa: PLC0415

    judged = _judge_of(trace, why)
    # The accounting needs nothing of the replay, and most of its time is spent outside Python's lock.
    with ThreadPoolExecutor(1) as second_core:
        counting = second_core.submit(_account, trace)
        judgement = judged(trace)
        syncs = sync_places(trace, judgement.evidence if judgement else None)
        counted = counting.result()
    health = [*trace.health_entries, *counted.health, *(judgement.health if judgement else [])]
    return Diagnosis(
        trace=trace,
        health=sorted(health, key=lambda entry: SEVERITIES.index(entry.severity)),
        devices=counted.devices,
        gaps=counted.gaps,
        steps=counted.steps,
        kernels=counted.kernels,
        launches=counted.launches,
        copies=counted.copies,
        syncs=syncs,
        gap_places=counted.gap_places,
        queue=counted.queue,
        judgement=judgement,
        cpu=cpu_time(trace),
        next_tools=next_tools(trace, judgement),
    )


class _Account(Struct, frozen=True):
    """What is counted in the whole trace, without a replay."""

    devices: list[DeviceTime]
    gaps: list[Gaps]
    steps: pl.DataFrame
    kernels: pl.DataFrame
    launches: pl.DataFrame
    copies: pl.DataFrame
    queue: QueueDepth | None
    gap_places: list[GapPlace]
    health: list[HealthEntry]


def _account(trace: Trace) -> _Account:
    devices, gaps, frames = device_times(trace), idle_gaps(trace), UserFrames(trace)
    busiest = max(zip(devices, gaps, strict=True), key=lambda pair: pair[0].busy_ns, default=None)
    return _Account(
        devices=devices,
        gaps=gaps,
        steps=step_times(trace),
        kernels=top_kernels(trace, LISTED_KERNELS),
        launches=launch_calls(trace),
        copies=copies(trace),
        queue=queue_depth(trace),
        gap_places=gap_places(trace, busiest[1], frames) if busiest else [],
        health=second_pass_health(trace, frames),
    )


def _calls_per_step(trace: Trace) -> float:
    window, starts = trace.window, trace.api.start_ns
    inside = (starts >= window.start_ns) & (starts <= window.end_ns)
    return int(inside.sum()) / max(len(trace.steps_in_view), 1)


def _judge_of(trace: Trace, why: bool | None) -> Callable[[Trace], Judgement | None]:
    """What gives the findings and the verdict: the replay, or nothing where it is turned off or takes too long."""
    if why is False or (why is None and _calls_per_step(trace) > MOST_CALLS):
        return lambda _: None
    from warpline.findings.judge import judge  # noqa: PLC0415

    def judged(trace: Trace) -> Judgement | None:
        try:
            return judge(trace)
        except CannotAnswer:
            return None

    return judged
