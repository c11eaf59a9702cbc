"""Kernels far from what the chip can do, without a more specific reason."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.replay.whatif import Prediction
from warpline.units import duration


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    known = evidence.scene.is_work & (evidence.scene.floor_ns() > 0)
    return Claim(
        f"Kernels take {duration(evidence.time_per_step(known))} a step, far above what the chip needs for the work.",
        evidence.places(known),
    )


RULE = Rule(
    name="below_roofline",
    cause="kernel",
    fix="at_roofline",
    how="warpline roofline TRACE lists them; look inside the worst with Nsight Compute.",
    look=look,
    most="low",
    specific=False,
    least_gain=1.3,
)
