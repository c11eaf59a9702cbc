"""Many small kernels, dispatched one by one: compiled, they are fewer and cheaper to launch."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.replay.whatif import Prediction

LEAST_KERNELS = 4
LEAST_IDLE = 0.1
"""Below, the device is the limit, and fusion is a matter of its kernels."""


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    fusible = evidence.scene.kernels("elementwise", "norm", "softmax", "reduction", "memory", "layout")
    count = evidence.per_step(fusible)
    if count < LEAST_KERNELS or evidence.idle_share < LEAST_IDLE:
        return None
    return Claim(
        f"{count:,.0f} small kernels a step (elementwise, norms, reductions) are launched one by one.",
        evidence.places(fusible),
    )


RULE = Rule(
    name="uncompiled",
    cause="dispatch",
    fix="torch_compile",
    how="model = torch.compile(model)",
    look=look,
    specific=False,
    most="medium",
)
