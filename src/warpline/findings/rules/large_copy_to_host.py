"""Whole tensors are copied to the host where a few numbers would do."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.replay.whatif import Prediction
from warpline.units import size

LARGE_BYTES = 1 << 20


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    scene = evidence.scene
    copies = (scene.work_text("copy_kind") == "DtoH") & (scene.bytes >= LARGE_BYTES)
    if not evidence.per_step(copies):
        return None
    total = float(scene.bytes[evidence.in_steps(copies)].sum()) / evidence.steps
    return Claim(
        f"{size(total)} a step are copied to the host in {evidence.per_step(copies):,.1f} large copies.",
        evidence.places(copies),
    )


RULE = Rule(
    name="large_copy_to_host",
    cause="transfer",
    fix="reduce_before_copy",
    how="Reduce on the device (argmax, mean, topk) and copy only what you look at.",
    look=look,
)
