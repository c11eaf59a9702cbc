"""Copies within the device that nothing needs: contiguous(), clone(), transposes made real."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.findings.words import several
from warpline.replay.whatif import Prediction
from warpline.units import duration


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    copies = evidence.changed(RULE.fix).work
    if not evidence.per_step(copies):
        return None
    return Claim(
        "clone, contiguous, repeat and to copy within the device: "
        f"{several(evidence.per_step(copies), 'copy', 'copies')} a step, {duration(evidence.time_per_step(copies))}.",
        evidence.costliest_places(copies),
    )


RULE = Rule(
    name="redundant_copies",
    cause="memory",
    fix="drop_copies",
    how=(
        "Leave out .contiguous() and .clone() where the next op takes the tensor as it is (products take transposed "
        "ones); use .reshape() instead of .contiguous().view(); write in place."
    ),
    look=look,
    most="medium",
)
