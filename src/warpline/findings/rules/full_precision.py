"""32-bit matrix products that bf16 would halve."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.replay.whatif import Prediction
from warpline.units import duration

WORTH_TRYING_FIRST = 1.05
"""TF32 is a switch and keeps fp32 weights: bf16 is for what remains."""


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    if evidence.gains("tf32", WORTH_TRYING_FIRST):
        return None
    products = evidence.scene.kernels("gemm", "conv", "attention")
    return Claim(
        f"Matrix products take {duration(evidence.time_per_step(products))} a step in 32 bits; bf16 would halve it.",
        evidence.places(products),
    )


RULE = Rule(
    name="full_precision",
    cause="kernel",
    fix="bf16",
    how=("with torch.autocast('cuda', torch.bfloat16): … (it changes the numerics: check the loss)"),
    look=look,
    most="medium",
)
