"""The diagnosis of a trace: its health, where each device's time went, its steps and its costliest kernels.

`Diagnosis.to_dict` is the JSON contract `warpline.diagnosis/1`; other programs rely on its keys.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import polars as pl
from msgspec import Struct, field, structs, to_builtins

from warpline.analyses.breakdown import DeviceTime, device_times
from warpline.analyses.cpu_time import CpuTime, cpu_time
from warpline.analyses.device import device_name
from warpline.analyses.idle.gap_places import GapPlace, gap_places
from warpline.analyses.idle.gaps import Gaps, idle_gaps
from warpline.analyses.idle.host_time import HostTime
from warpline.analyses.kernels import top_kernels
from warpline.analyses.launches import QueueDepth, launch_calls, queue_depth
from warpline.analyses.platform import platform_of
from warpline.analyses.serving import Serving, serving
from warpline.analyses.step_loops import StepLoops, step_loops
from warpline.analyses.steps import step_times
from warpline.analyses.transfers import copies
from warpline.analyses.user_frames import second_pass_health
from warpline.errors import CannotAnswer
from warpline.estimate import Estimate
from warpline.findings.audit import Objection, audit_accounting
from warpline.findings.cpu_verdict import cpu_verdict
from warpline.findings.doubts import obstacle
from warpline.findings.judge import Judgement, judge
from warpline.findings.model import Finding, Verdict
from warpline.findings.next_tool import NextTool, next_tools
from warpline.findings.plan import PlanStep
from warpline.findings.sync_places import sync_places
from warpline.hardware.vocabulary import in_words_of
from warpline.notebook import ShownAsCard
from warpline.replay.bare_step import timed_ns
from warpline.replay.cold_steps import cold_spans
from warpline.replay.replay import are_uneven, most_take
from warpline.replay.representative_steps import warm_steps
from warpline.sanitise import sanitise
from warpline.sources.health import SEVERITIES, HealthEntry
from warpline.trace.trace import Trace
from warpline.units import speedup

SCHEMA = "warpline.diagnosis/1"
LISTED_KERNELS = 20
MOST_CALLS = 100_000
"""Findings are computed by default up to this many API calls a step: replaying takes about 65 µs a call."""


class Account(Struct, frozen=True):
    """Where the time of some steps, or of a recording, goes."""

    steps: int
    """How many steps it is of; 0 for a recording from its first to its last GPU operation."""
    devices: list[DeviceTime]
    gaps: list[Gaps]
    """Idle gaps of the same devices, by cause."""
    gap_places: list[GapPlace]
    """What runs on the CPU while the busiest device is idle, by kind of gap."""

    @property
    def busiest(self) -> tuple[DeviceTime, Gaps]:
        """The device that is busy longest, and its gaps."""
        return max(zip(self.devices, self.gaps, strict=True), key=lambda pair: pair[0].busy_ns)


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
    in_steps: Account | None
    """The account of the steps without cold ones at either end; None without steps, or where some were chosen."""
    steps: pl.DataFrame
    step_loops: StepLoops
    """What a step repeats: optimizer steps, forward calls, sequences of GPU operations."""
    kernels: pl.DataFrame
    launches: pl.DataFrame
    copies: pl.DataFrame
    gap_places: list[GapPlace]
    """What runs on the CPU while the busiest device is idle, by kind of gap."""
    queue: QueueDepth | None
    serving: Serving | None
    """The steps of a serving engine by phase; None for other programs."""
    cpu: CpuTime | None
    """Where the CPU's time goes; None if the trace has GPU work."""
    judgement: Judgement | None = None
    """Findings and verdict; None if nothing can be replayed, or replaying was turned off."""
    syncs: pl.DataFrame = field(default_factory=pl.DataFrame)
    """Places where the CPU waits, per step: the blocked time, and the time recoverable by not waiting."""
    next_tools: list[NextTool] = field(default_factory=list)
    """For each top kernel: whether the timeline explains it, or Nsight Compute is needed, with its command."""

    @property
    def shown(self) -> Account:
        """The account that belongs to the verdict: that of the steps, or of the recording where it is about that."""
        judged = self.judgement
        is_about_recording = judged is not None and (judged.evidence.mostly_cold or not judged.state.is_covered)
        if self.in_steps is not None and not is_about_recording:
            return self.in_steps
        return Account(len(self.steps) if self.trace.chosen_steps else 0, self.devices, self.gaps, self.gap_places)

    @property
    def step_ns(self) -> Estimate | None:
        """The step without the profiler, or the recording where no steps were found; if nothing was replayed, as timed
        or else as recorded, and None if that is unknown, too."""
        if self.judgement is not None:
            return self.judgement.evidence.bare.step_ns
        if len(self.trace.steps_in_view):
            starts, ends = self.trace.step_spans
            timed = timed_ns(self.trace.file, are_uneven((ends - starts).astype(np.float64)))
            if timed is not None:
                return timed
        return None if self.recorded_step_ns is None else Estimate.exactly(self.recorded_step_ns)

    @property
    def recorded_step_ns(self) -> float | None:
        """The same as recorded."""
        if self.judgement is not None:
            return self.judgement.evidence.question.replay.measured_step_ns
        return self.trace.step_ns

    @property
    def most_steps_take_it(self) -> bool:
        """Whether most of all steps are as long as the recorded one that stands for them."""
        starts, ends = self.trace.step_spans
        return most_take((ends - starts).astype(np.float64), self.recorded_step_ns or 0.0)

    @property
    def obstacle(self) -> str | None:
        """Why nothing can be said of the program's steps; None where something can."""
        return obstacle(self.judgement.state) if self.judgement is not None else None

    @property
    def verdict(self) -> Verdict | None:
        """The cause and what to fix first; None if the trace has GPU work and was not replayed."""
        if self.judgement is not None:
            return self.judgement.verdict
        return cpu_verdict(self.trace, self.cpu) if self.cpu is not None else None

    @property
    def plan(self) -> list[PlanStep]:
        """The order in which fixes are best made, each on top of the last; the verdict names the first."""
        return self.judgement.plan if self.judgement else []

    @property
    def audit(self) -> list[Objection]:
        """What the trace contradicted, and was withdrawn or downgraded."""
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
        return device_name(self.trace, self.devices[0].device) if self.devices else None

    def _replay(self) -> dict[str, Any] | None:
        if self.judgement is None:
            return None
        question = self.judgement.evidence.question
        return {
            "measured_step_ns": round(question.replay.measured_step_ns),
            "replayed_step_ns": round(question.replay.replayed_step_ns),
            "error_pct": round(question.replay.error_pct, 3),
            "bare_step_ns": round(question.bare.expected_ns),
            "bare_step_range_ns": {"low": round(question.bare.step_ns.low), "high": round(question.bare.step_ns.high)},
            "bare_step_from": question.bare.step_from,
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
                "health": to_builtins(self.health),
            },
            "devices": [_device(device, gaps.totals()) for device, gaps in zip(self.devices, self.gaps, strict=True)],
            "account": [
                _device(device, gaps.totals()) for device, gaps in zip(self.shown.devices, self.shown.gaps, strict=True)
            ],
            "replay": self._replay(),
            "limits": [row.to_dict() for row in self.judgement.limits.rows] if self.judgement else [],
            "verdict": to_builtins(self.verdict),
            "plan": [step.to_dict() for step in self.plan],
            "findings": to_builtins(self.findings),
            "audit": to_builtins(self.audit),
            "steps": self.steps.to_dicts(),
            "step_loops": to_builtins(self.step_loops),
            "kernels": self.kernels.to_dicts(),
            "next_tools": [tool.to_dict() for tool in self.next_tools],
            "launches": self.launches.to_dicts(),
            "copies": self.copies.to_dicts(),
            "syncs": self.syncs.to_dicts(),
            "gap_places": to_builtins(self.gap_places),
            "queue_depth": to_builtins(self.queue),
            "serving": self.serving.to_dict() if self.serving else None,
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
    # The accounting needs nothing of the replay, and most of its time is spent outside Python's lock.
    with ThreadPoolExecutor(1) as second_core:
        counting = second_core.submit(_without_replay, trace)
        judgement = _judgement(trace, why)
        syncs = sync_places(trace, judgement.evidence if judgement else None)
        counted = counting.result()
    health = [*counted.health, *(judgement.health if judgement else [])]
    return structs.replace(
        counted,
        health=in_words_of(platform_of(trace), sorted(health, key=lambda entry: SEVERITIES.index(entry.severity))),
        syncs=syncs,
        judgement=judgement,
        next_tools=next_tools(trace, judgement),
    )


def _without_replay(trace: Trace) -> Diagnosis:
    """What is counted in the trace; what a replay adds is still empty."""
    host = HostTime(trace, cold=cold_spans(trace))
    whole = _account(trace, host)
    steps = warm_steps(trace)
    judged = trace.with_steps(steps) if steps else trace
    in_steps = _account(judged, host) if steps else None
    return Diagnosis(
        trace=trace,
        health=[*trace.health_entries, *second_pass_health(trace)],
        devices=whole.devices,
        gaps=whole.gaps,
        in_steps=in_steps,
        steps=step_times(trace),
        step_loops=step_loops(trace),
        kernels=top_kernels(trace, LISTED_KERNELS),
        launches=launch_calls(trace),
        copies=copies(trace),
        gap_places=whole.gap_places,
        queue=queue_depth(trace),
        serving=serving(judged, (in_steps or whole).gaps),
        cpu=cpu_time(trace),
    )


def _account(trace: Trace, host: HostTime) -> Account:
    """The account of the window; `host` is that of all of the trace."""
    found = Account(len(trace.steps_in_view), device_times(trace), idle_gaps(trace, host), [])
    if not found.devices:
        return found
    return structs.replace(found, gap_places=gap_places(trace, found.busiest[1]))


def _judgement(trace: Trace, why: bool | None) -> Judgement | None:
    """Findings and verdict; None where the replay is turned off, takes too long or cannot answer."""
    if why is False or (why is None and _calls_per_step(trace) > MOST_CALLS):
        return None
    try:
        return judge(trace)
    except CannotAnswer:
        return None


def _calls_per_step(trace: Trace) -> float:
    window, starts = trace.window, trace.api.start_ns
    inside = (starts >= window.start_ns) & (starts <= window.end_ns)
    return int(inside.sum()) / max(len(trace.steps_in_view), 1)
