"""Communication that nothing hides."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.replay.whatif import Prediction
from warpline.units import duration


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    kernels = evidence.scene.kernels("comm")
    time = evidence.time_per_step(kernels)
    return Claim(
        f"Collectives take {duration(time)} a step in which no computation runs beside them.", evidence.places(kernels)
    )


RULE = Rule(
    name="exposed_collective",
    cause="comm",
    fix="overlap_comm",
    how=("Let communication run beside backward: DDP's gradient_as_bucket_view and bucket_cap_mb, FSDP's prefetch."),
    look=look,
    most="medium",
)
