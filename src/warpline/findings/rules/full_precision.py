"""32-bit matrix products that bf16 would halve."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.replay.interventions.precision import in_double
from warpline.replay.whatif import Prediction
from warpline.units import duration

WORTH_TRYING_FIRST = 1.05
"""TF32 is a switch and keeps fp32 weights: bf16 is for what remains."""


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    if evidence.gains("tf32", WORTH_TRYING_FIRST):
        return None
    change = evidence.changed(RULE.fix)
    single = change.work & ~evidence.scene.kernels_where(in_double)
    products = single & evidence.scene.kernels("gemm", "conv", "attention")
    casts = single & change.gone
    moving = single & ~products & ~casts
    parts = [
        f"{what} {duration(evidence.time_per_step(nodes))}"
        for what, nodes in (
            ("matrix products and attention", products),
            ("other kernels", moving),
            ("casts between types", casts),
        )
        if evidence.per_step(nodes)
    ]
    if not parts:
        return None
    return Claim(
        f"Work in 32 bits takes {duration(evidence.time_per_step(single))} a step ({', '.join(parts)}).",
        evidence.costliest_places(single),
    )


RULE = Rule(
    name="full_precision",
    cause="kernel",
    fix="bf16",
    how=(
        "with torch.autocast('cuda', torch.bfloat16): out = model(x); loss = criterion(out, y) – for inference "
        "model.to(torch.bfloat16) (it changes the numerics: check the loss)"
    ),
    look=look,
    most="medium",
)
