"""An optimizer that updates one parameter at a time."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.replay.whatif import Prediction

LEAST_KERNELS = 8
LEAST_IDLE = 0.2
"""Below, the device is the limit, and the optimizer a matter of its kernels."""


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    kernels = evidence.scene.within_ranges("Optimizer.step")
    count = evidence.per_step(kernels & evidence.scene.is_work)
    if count < LEAST_KERNELS or evidence.idle_share < LEAST_IDLE:
        return None
    return Claim(
        f"The optimizer launches {count:,.0f} operations a step, several for each parameter.",
        evidence.places(kernels & evidence.scene.is_work),
    )


RULE = Rule(
    name="per_parameter_optimizer",
    cause="dispatch",
    fix="fused_optimizer",
    how="torch.optim.AdamW(…, fused=True)",
    look=look,
)
