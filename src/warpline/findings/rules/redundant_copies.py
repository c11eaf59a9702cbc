"""Copies within the device that nothing needs: contiguous(), clone(), transposes made real."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.replay.whatif import Prediction
from warpline.units import duration


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    copies = evidence.scene.kernels("memory", "layout") | (evidence.scene.work_text("copy_kind") == "DtoD")
    if not evidence.per_step(copies):
        return None
    return Claim(
        f"{evidence.per_step(copies):,.0f} copies within the device take "
        f"{duration(evidence.time_per_step(copies))} a step.",
        evidence.places(copies),
    )


RULE = Rule(
    name="redundant_copies",
    cause="memory",
    fix="drop_copies",
    how="Leave out .contiguous() and .clone() where the next op takes the tensor as it is; write in place.",
    look=look,
    most="medium",
)
