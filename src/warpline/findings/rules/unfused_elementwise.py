"""A busy device that reads and writes the same data again and again: fusion does it once."""

from __future__ import annotations

from warpline.findings.compiled import already_compiled
from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.findings.words import counted, several
from warpline.replay.whatif import Prediction
from warpline.units import duration

MOST_IDLE = 0.1
"""Above, dispatch is the matter, not the kernels."""
LEAST_KERNELS = 2


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    change = evidence.changed(RULE.fix)
    if already_compiled(evidence, change.work):
        return None
    chains = change.work
    if evidence.bare_idle_share >= MOST_IDLE or evidence.per_step(chains) < LEAST_KERNELS:
        return None
    return Claim(
        f"{several(evidence.per_step(chains), 'kernel')} a step ({duration(evidence.time_per_step(chains))}) read and "
        f"write the same data one after the other (elementwise, norms, reductions); fused, they would be "
        f"{counted(evidence.per_step(chains & ~change.gone))}.",
        evidence.places(chains),
    )


RULE = Rule(
    name="unfused_elementwise",
    cause="kernel",
    fix="torch_compile",
    how="model = torch.compile(model), or write the chain as one Triton kernel",
    look=look,
    most="medium",
)
