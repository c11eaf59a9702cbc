"""Buffers that grow by concatenation."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.replay.whatif import Prediction
from warpline.units import duration


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    copies = evidence.scene.kernels("memory", "layout")
    return Claim(
        f"Buffers grow by concatenation: {duration(evidence.time_per_step(copies))} a step copy what was there before.",
        evidence.places(copies),
    )


RULE = Rule(
    name="cat_growth",
    cause="memory",
    fix="preallocate",
    how=("Allocate the buffer (a KV cache, say) once at its final size and write into it: cache[:, :, pos] = new"),
    look=look,
    most="medium",
)
