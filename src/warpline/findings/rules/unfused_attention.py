"""Attention as separate products and softmax."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.findings.words import several
from warpline.replay.whatif import Prediction
from warpline.units import duration


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    members = evidence.changed(RULE.fix).work
    softmax = members & evidence.scene.kernels("softmax")
    if not evidence.per_step(softmax):
        return None
    kernels = evidence.per_step(members) / evidence.per_step(softmax)
    return Claim(
        f"Attention is written out as products and softmax {several(evidence.per_step(softmax), 'time')} a step (about "
        f"{several(kernels, 'kernel')} each, {duration(evidence.time_per_step(members))} in all), and its scores "
        "travel through memory.",
        evidence.places(softmax),
    )


RULE = Rule(
    name="unfused_attention",
    cause="kernel",
    fix="sdpa",
    how=(
        "torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask) in place of the products and the "
        "softmax, is_causal=True for a causal mask; in transformers, attn_implementation='sdpa'"
    ),
    look=look,
)
