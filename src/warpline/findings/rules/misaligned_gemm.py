"""Matrix products whose sizes keep them off the fast kernels."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.replay.whatif import Prediction


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    products = evidence.scene.kernels("gemm")
    return Claim(
        "Matrix products have sizes that are not multiples of 8 (16-bit) or 4 (fp32), and run on slower kernels.",
        evidence.places(products),
    )


RULE = Rule(
    name="misaligned_gemm",
    cause="kernel",
    fix="pad",
    how="Pad the vocabulary, the hidden size or the batch to a multiple of 8, better 64.",
    look=look,
)
