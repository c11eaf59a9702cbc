"""Many small copies, each with the cost of a call."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.replay.whatif import Prediction
from warpline.units import size

SMALL_BYTES = 64 << 10
LEAST_COPIES = 8


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    scene = evidence.scene
    copies = (scene.kind == "memcpy") & (scene.bytes <= SMALL_BYTES)
    count = evidence.per_step(copies)
    if count < LEAST_COPIES:
        return None
    return Claim(
        f"{count:,.0f} copies a step of at most {size(SMALL_BYTES)} each: every one costs a call.",
        evidence.places(copies),
    )


RULE = Rule(
    name="many_small_copies",
    cause="transfer",
    fix="coalesce_copies",
    how="Gather the pieces into one pinned buffer and copy it at once.",
    look=look,
)
