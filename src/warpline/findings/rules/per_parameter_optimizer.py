"""An optimizer that updates one parameter at a time."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.optimizers import fused_version
from warpline.findings.rule import Claim, Rule
from warpline.findings.words import several
from warpline.replay.whatif import Prediction
from warpline.units import duration

LEAST_KERNELS = 8
LEAST_IDLE = 0.2
LONG_KERNEL_NS = 20_000
"""Below this idle share, or with kernels of this length, the device is the limit, and the optimizer a matter of its
kernels."""


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    kernels = evidence.changed(RULE.fix).work
    count = evidence.per_step(kernels)
    if count < LEAST_KERNELS or evidence.bare_idle_share < LEAST_IDLE:
        return None
    if evidence.time_per_step(kernels) >= LONG_KERNEL_NS * count:
        return None
    return Claim(
        f"The optimizer launches {several(count, 'kernel')} a step of "
        f"{duration(evidence.time_per_step(kernels) / count)} each, several for each parameter.",
        evidence.places(kernels),
        fused_version(evidence, kernels),
    )


RULE = Rule(
    name="per_parameter_optimizer",
    cause="dispatch",
    fix="fused_optimizer",
    how=(
        "torch.optim.AdamW(model.parameters(), …, fused=True): one kernel for many parameters; drop foreach=False; "
        "optimizers without a fused version take foreach=True"
    ),
    look=look,
)
