"""Convolutions in the layout that tensor cores do not like."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.findings.words import several
from warpline.replay.whatif import Prediction
from warpline.units import duration


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    change = evidence.changed(RULE.fix)
    transposes, convolutions = change.work & change.gone, change.work & ~change.gone
    if not evidence.per_step(change.work):
        return None
    return Claim(
        f"Convolutions run channels-first: {several(evidence.per_step(transposes), 'transposing kernel')} a step take "
        f"{duration(evidence.time_per_step(transposes))}, and "
        f"{several(evidence.per_step(convolutions), 'convolution')} in that layout "
        f"{duration(evidence.time_per_step(convolutions))}.",
        evidence.places(change.work),
    )


RULE = Rule(
    name="channels_first",
    cause="kernel",
    fix="channels_last",
    how=(
        "model = model.to(memory_format=torch.channels_last), once, and every input "
        "x = x.to('cuda', memory_format=torch.channels_last)"
    ),
    look=look,
)
