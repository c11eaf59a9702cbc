"""A busy device that reads and writes the same data again and again: fusion does it once."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.replay.whatif import Prediction
from warpline.units import duration

MOST_IDLE = 0.1
"""Above, dispatch is the matter, not the kernels."""
LEAST_KERNELS = 2


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    fusible = evidence.scene.kernels("elementwise", "norm", "softmax", "reduction", "memory", "layout")
    time = evidence.time_per_step(fusible)
    if evidence.idle_share >= MOST_IDLE or evidence.per_step(fusible) < LEAST_KERNELS:
        return None
    return Claim(
        f"Chains of elementwise and norm kernels read and write memory {evidence.per_step(fusible):,.0f} times a step "
        f"({duration(time)}); fused, they would do so once a chain.",
        evidence.places(fusible),
    )


RULE = Rule(
    name="unfused_elementwise",
    cause="kernel",
    fix="torch_compile",
    how="model = torch.compile(model), or write the chain as one Triton kernel",
    look=look,
    most="medium",
)
