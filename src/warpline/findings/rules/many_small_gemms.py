"""A loop over what could be one batch."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.replay.whatif import Prediction


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    products = evidence.scene.kernels("gemm")
    count = evidence.per_step(products)
    return Claim(
        f"{count:,.0f} small matrix products a step, the same ones again and again: batched, they would be a few.",
        evidence.places(products),
    )


RULE = Rule(
    name="many_small_gemms",
    cause="dispatch",
    fix="batch",
    how=("Process the batch at once (torch.bmm, a larger batch) instead of looping over samples."),
    look=look,
    most="medium",
)
