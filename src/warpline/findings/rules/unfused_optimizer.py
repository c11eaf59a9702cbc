"""An optimizer that reads and writes all parameters once for every operation of its formula."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.replay.whatif import Prediction
from warpline.units import duration

MOST_IDLE = 0.2
"""Above, the optimizer's launches are the matter, not its kernels."""


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    kernels = evidence.scene.within_ranges("Optimizer.step") & evidence.scene.is_work
    if not evidence.per_step(kernels) or evidence.idle_share >= MOST_IDLE:
        return None
    return Claim(
        f"The optimizer's kernels take {duration(evidence.time_per_step(kernels))} a step: each reads and writes "
        "memory that one fused kernel would touch once.",
        evidence.places(kernels),
    )


RULE = Rule(
    name="unfused_optimizer",
    cause="kernel",
    fix="fused_optimizer",
    how="torch.optim.AdamW(…, fused=True)",
    look=look,
)
