"""Convolutions in the layout that tensor cores do not like."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.replay.whatif import Prediction
from warpline.units import duration


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    convolutions = evidence.scene.kernels("conv", "layout")
    if not evidence.per_step(convolutions):
        return None
    return Claim(
        f"Convolutions run channels-first: {duration(evidence.time_per_step(convolutions))} a step go into them "
        "and their transposes.",
        evidence.places(convolutions),
    )


RULE = Rule(
    name="channels_first",
    cause="kernel",
    fix="channels_last",
    how="model.to(memory_format=torch.channels_last), and the input likewise",
    look=look,
)
