"""Attention as separate products and softmax."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.replay.whatif import Prediction
from warpline.units import duration


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    softmax = evidence.scene.kernels("softmax")
    if not evidence.per_step(softmax):
        return None
    return Claim(
        f"Attention is written out as products and {evidence.per_step(softmax):,.0f} softmax kernels a step "
        f"({duration(evidence.time_per_step(softmax))}), and its scores travel through memory.",
        evidence.places(softmax),
    )


RULE = Rule(
    name="unfused_attention",
    cause="kernel",
    fix="sdpa",
    how=("torch.nn.functional.scaled_dot_product_attention(q, k, v); in transformers, attn_implementation='sdpa'"),
    look=look,
)
