"""Kernels that only change the type of a tensor."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.findings.words import several
from warpline.replay.whatif import Prediction
from warpline.units import duration


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    casts = evidence.changed(RULE.fix).work
    if not evidence.per_step(casts):
        return None
    return Claim(
        f"Tensors are cast from one type to another: {several(evidence.per_step(casts), 'kernel')} a step, "
        f"{duration(evidence.time_per_step(casts))}.",
        evidence.costliest_places(casts),
    )


RULE = Rule(
    name="dtype_casts",
    cause="kernel",
    fix="drop_casts",
    how=(
        "Make tensors in the type in which they are used: torch.zeros(n, device='cuda', dtype=x.dtype), weights cast "
        "once with model.to(torch.bfloat16) instead of w.to(x.dtype) in forward; mind that bf16 * fp32 gives fp32."
    ),
    look=look,
    most="medium",
)
