"""Many small kernels, dispatched one by one: compiled, they are fewer and cheaper to launch."""

from __future__ import annotations

from warpline.findings.compiled import already_compiled
from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.findings.words import counted, several
from warpline.replay.whatif import Prediction

LEAST_KERNELS = 4
LEAST_IDLE = 0.1
"""Below, the device is the limit, and fusion is a matter of its kernels."""


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    change = evidence.changed(RULE.fix)
    if already_compiled(evidence, change.work):
        return None
    launches = change.gone | change.relaunched
    if evidence.per_step(change.work) < LEAST_KERNELS or evidence.bare_idle_share < LEAST_IDLE:
        return None
    return Claim(
        f"{several(evidence.per_step(launches), 'operation')} a step are dispatched one by one; compiled, "
        f"{counted(evidence.per_step(change.gone))} of them (elementwise, norms, reductions) are fused with others.",
        evidence.places(launches),
    )


RULE = Rule(
    name="uncompiled",
    cause="dispatch",
    fix="torch_compile",
    how="model = torch.compile(model); with varying shapes torch.compile(model, dynamic=True)",
    look=look,
    specific=False,
    most="medium",
)
