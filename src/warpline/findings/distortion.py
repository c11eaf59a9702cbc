"""Detects profiles whose times mislead: recording costs much, or the host was slow."""

from __future__ import annotations

from warpline.fixes.evidence import Evidence
from warpline.replay.ranges import is_host_paced
from warpline.sources.health import HealthEntry
from warpline.trace.arrays import NONE
from warpline.units import duration

LEAST_DISTORTION = 1.5
"""Recorded step over bare step; recording slows a dispatch-bound step this much even without stacks."""

NOTICED = 0.9
"""A host that would make a step shorter by less than a tenth, if it were not slow, is not worth a note."""


def profiler_distortion(evidence: Evidence) -> HealthEntry | None:
    """Reports a large recording overhead: a doubt about the profile, not a fault of the program."""
    bare, recorded = evidence.bare.step_ns, evidence.question.replay.measured_step_ns
    if recorded < LEAST_DISTORTION * bare.expected:
        return None
    trace = evidence.trace
    extras = {
        "stacks": len(trace.python),
        "shapes": int((trace.ops.shapes.codes != NONE).sum()),
        "memory events": len(trace.memory),
    }
    with_what = ", ".join(name for name, count in extras.items() if count) or "ops and API calls only"
    what = "the step" if len(trace.all_steps) else "it"
    calm = " on a calm host" if is_host_paced(evidence.bare.idle_share) else ""
    message = (
        f"recording ({with_what}) made {what} {recorded / bare.expected:.1f}× as long: {duration(recorded)} here, "
        f"about {duration(bare.expected)} ({duration(bare.low)} to {duration(bare.high)}{calm}) without it"
    )
    return HealthEntry("profiler-distortion", "warning", message)


def slow_host(evidence: Evidence) -> HealthEntry | None:
    """Reports a host whose launches take much longer than usual, where a faster one would shorten the step."""
    bare = evidence.bare
    if bare.calm_ns > NOTICED * bare.expected_ns:
        return None
    message = (
        f"kernel launches took {bare.slowness:.1f}× as long as on the reference host: the CPU is slow, or it was "
        f"busy with something else; if that is not always so, {evidence.noun.one('the')} usually takes "
        f"{duration(bare.calm_ns)} instead of {duration(bare.expected_ns)}, and the ranges include that"
    )
    return HealthEntry("slow-host", "warning", message)
