"""An optimizer that reads and writes all parameters once for every operation of its formula."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.optimizers import fused_version
from warpline.findings.rule import Claim, Rule
from warpline.findings.rules.per_parameter_optimizer import LONG_KERNEL_NS
from warpline.findings.words import several
from warpline.replay.whatif import Prediction
from warpline.units import duration

MOST_IDLE = 0.2
"""Above, the launches of an optimizer with short kernels are the matter, not its kernels."""


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    kernels = evidence.changed(RULE.fix).work
    count = evidence.per_step(kernels)
    launches_matter = evidence.bare_idle_share >= MOST_IDLE and evidence.time_per_step(kernels) < LONG_KERNEL_NS * count
    if not count or launches_matter:
        return None
    return Claim(
        f"The optimizer's {several(count, 'kernel')} take {duration(evidence.time_per_step(kernels))} a step: each "
        "reads and writes memory that one fused kernel would touch once.",
        evidence.places(kernels),
        fused_version(evidence, kernels),
    )


RULE = Rule(
    name="unfused_optimizer",
    cause="kernel",
    fix="fused_optimizer",
    how="torch.optim.AdamW(model.parameters(), …, fused=True)",
    look=look,
)
