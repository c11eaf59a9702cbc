"""Many small copies, each with the cost of a call."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.findings.words import counted
from warpline.replay.whatif import Prediction
from warpline.units import size

LEAST_COPIES = 8


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    change = evidence.changed(RULE.fix)
    copies = change.work & (evidence.scene.kind == "memcpy")
    count = evidence.per_step(copies)
    if count < LEAST_COPIES:
        return None
    largest = int(evidence.scene.bytes[evidence.in_steps(copies)].max())
    return Claim(
        f"{counted(count)} copies a step of at most {size(largest)} each follow each other: every one costs a "
        f"call, and {counted(evidence.per_step(copies & ~change.gone))} would do.",
        evidence.places(copies),
    )


RULE = Rule(
    name="many_small_copies",
    cause="transfer",
    fix="coalesce_copies",
    how=(
        "Gather the pieces into one pinned buffer and copy it at once: "
        "torch.stack(pieces).pin_memory().to('cuda', non_blocking=True), then .unbind()."
    ),
    look=look,
)
