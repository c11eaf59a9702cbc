"""What the verdict reads of a trace besides the findings: how its time is spent, and what makes it doubtful."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from warpline.analyses.breakdown import device_times
from warpline.analyses.framework import Framework
from warpline.fixes.evidence import Evidence
from warpline.fixes.words import StepNoun
from warpline.replay.bounds import DeviceWork
from warpline.replay.ranges import is_host_paced
from warpline.replay.remaining import KERNEL_SPREAD
from warpline.trace.launches import launched_ns
from warpline.trace.steps.proper_steps import loaded_before
from warpline.trace.trace import Trace
from warpline.units import duration

MIN_COVERED = 0.5
"""Share of the recording's GPU time that the steps must hold to stand for it."""

MOST_IDLE = 0.3
"""A step with a larger idle share is not healthy, whatever the replay predicts."""


class State(Struct, frozen=True):
    """How the busiest device spends the judged steps; shares of their time unless said otherwise."""

    step_ns: float
    """Without a profiler."""
    idle_share: float
    """As recorded."""
    bare_idle_share: float
    """Without a profiler."""
    idle: dict[str, float]
    """By cause, as recorded."""
    compute: float
    copy: float
    """Exposed copies, from or to the host and on the device; communication is exposed, too."""
    comm: float
    roofline_share: float | None
    """Roofline floor of the kernels over their time."""
    device_copy: float = 0.0
    """Part of the copies that stays on the device."""
    errors: tuple[str, ...] = ()
    """Codes of the health errors."""
    covered: float = 1.0
    """Share of the recording's GPU time that was launched in steps."""
    recorded_steps: int = 2
    replay_error_pct: float = 0.0
    noun: StepNoun = StepNoun("step")
    """What its times are about: a recording in which no steps were found counts as one."""
    framework: Framework = "pytorch"
    """What the program is written with."""
    fits_devices: bool = True
    """Whether a step is at least as long as what a device does in it."""
    least_idle_share: float | None = None
    """Without a profiler, if the step is as short as its range allows."""
    calm_idle_share: float = 1.0
    """Without a profiler, if the host was slow only while it recorded."""
    slowness: float = 1.0
    """How many times slower than usual the host was."""

    @property
    def step_words(self) -> str:
        """The step with its length: `a step of 2 ms`."""
        return self.noun.lasting(duration(self.step_ns))

    @property
    def is_covered(self) -> bool:
        """Whether the steps stand for the recording; else compute, copies and communication are the recording's."""
        return self.covered >= MIN_COVERED

    @property
    def busy(self) -> float:
        """Busy time that is compute, exposed copies or exposed communication."""
        return self.compute + self.copy + self.comm

    @property
    def is_busy(self) -> bool:
        """Whether the device may be busy all the time, so that it sets the pace: recording makes the host slower, and
        how much of the idle time is its own is known only within the range of the step."""
        least = self.bare_idle_share if self.least_idle_share is None else self.least_idle_share
        return not is_host_paced(min(self.idle_share, least))

    @property
    def certain_idle(self) -> float:
        """Idle share that neither recording nor a slow moment of the host added."""
        return min(self.program_idle, self.calm_idle_share)

    @property
    def program_idle(self) -> float:
        """Idle share that recording did not add."""
        return min(self.idle_share, self.bare_idle_share)

    @property
    def waits_long(self) -> bool:
        """Whether the device waits for so long that the step is not healthy."""
        return self.certain_idle >= MOST_IDLE

    @property
    def waits_for_slow_host(self) -> bool:
        """Whether it would not wait for so long if the host was slow only while it recorded."""
        return not self.waits_long and self.program_idle >= MOST_IDLE


def state_of(trace: Trace, evidence: Evidence, work: DeviceWork) -> State:
    """The state of a trace whose judged steps the evidence is about."""
    judged, covered = evidence.trace, covered_share(trace)
    looked_at = judged if covered >= MIN_COVERED else trace
    window = max(judged.window.length_ns, 1)
    busiest = max(device_times(looked_at), key=lambda device: device.busy_ns, default=None)
    whole = max(looked_at.window.length_ns, 1)
    return State(
        step_ns=evidence.step_ns,
        idle_share=evidence.idle_share,
        bare_idle_share=evidence.bare_idle_share,
        idle={cause: length / window for cause, length in evidence.idle.items()},
        compute=busiest.compute_ns / whole if busiest else 0.0,
        copy=busiest.copy_ns / whole if busiest else 0.0,
        comm=busiest.comm_ns / whole if busiest else 0.0,
        roofline_share=evidence.roofline_share,
        device_copy=_on_device_share(looked_at) * busiest.copy_ns / whole if busiest else 0.0,
        errors=tuple(entry.code for entry in trace.health_entries if entry.severity == "error"),
        covered=covered,
        recorded_steps=evidence.recorded_steps,
        replay_error_pct=evidence.question.replay.error_pct,
        noun=evidence.noun,
        framework=evidence.framework,
        least_idle_share=_idle_share_of(evidence, evidence.question.bare_step_ns.low),
        slowness=evidence.question.slowness,
        calm_idle_share=_idle_share_of(evidence, evidence.question.calm_step_ns),
        fits_devices=work.busy_ns <= (1 + KERNEL_SPREAD) * evidence.question.bare_step_ns.high,
    )


def _on_device_share(trace: Trace) -> float:
    """Share of the copying time in which a device copies within its own memory."""
    length = trace.gpu.end_ns - trace.gpu.start_ns
    within, all_copies = (length[trace.gpu.copy_kind.like(kind)].sum() for kind in ("^DtoD$", ""))
    return float(within) / max(float(all_copies), 1.0)


def _idle_share_of(evidence: Evidence, step_ns: float) -> float:
    """The idle share if the bare step were so long."""
    busy_ns = (1 - evidence.bare_idle_share) * evidence.question.bare_step_ns.expected
    return max(0.0, 1 - busy_ns / max(step_ns, 1.0))


def covered_share(trace: Trace) -> float:
    """Share of the GPU time that was launched (or ran, where the launch is unknown) in the steps; 1 where steps were
    asked for, or none were found. A model that is loaded before the first kernel is not counted."""
    steps = trace.steps_in_view
    if trace.chosen_steps is not None or not len(steps) or not len(trace.gpu):
        return 1.0
    starts, ends = trace.gpu.start_ns, trace.gpu.end_ns
    launched = launched_ns(trace.gpu, trace.api)
    inside = np.zeros(len(starts), bool)
    for moment in (starts, launched):
        step = np.searchsorted(steps.start_ns, moment, side="right") - 1
        inside |= (step >= 0) & (moment < steps.end_ns[step])
    length = np.where(loaded_before(trace.stored("gpu"), starts), 0, np.maximum(ends - starts, 0))
    return float(length[inside].sum()) / max(float(length.sum()), 1.0)
