"""A profile that slowed the program down so much that its own times mislead."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.findings.words import listed
from warpline.replay.whatif import Prediction
from warpline.units import duration

LEAST_DISTORTION = 1.5
"""Recorded step over bare step; recording costs a dispatch-bound step this much even without stacks."""


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    bare, recorded = evidence.question.bare_step_ns, evidence.question.replay.measured_step_ns
    if recorded < LEAST_DISTORTION * bare.expected:
        return None
    trace = evidence.trace
    extras = {
        "Python stacks": len(trace.python),
        "shapes": int(trace.ops["shapes"].is_not_null().sum()),
        "memory events": len(trace.memory),
    }
    with_what = listed(name for name, count in extras.items() if count) or "nothing but ops and calls"
    return Claim(
        f"Recording made the step {recorded / bare.expected:.1f} times as long (with {with_what}): "
        f"{duration(recorded)} in the profile, about {duration(bare.expected)} ({duration(bare.low)} to "
        f"{duration(bare.high)}) without it, from which all gains are counted."
    )


RULE = Rule(
    name="profiler_distortion",
    cause="dispatch",
    fix="record_lighter",
    how=(
        "Record less: profile(with_stack=False, record_shapes=False, profile_memory=False, "
        "schedule=torch.profiler.schedule(wait=1, warmup=3, active=5)), and stacks in a second run; time the step "
        "itself without a profiler."
    ),
    look=look,
    most="low",
    least_gain=0.0,
)
