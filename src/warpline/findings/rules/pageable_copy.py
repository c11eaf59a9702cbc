"""Copies from pageable memory block the CPU and run at a fraction of the bandwidth."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.replay.whatif import Prediction
from warpline.units import size

SMALL_RESULT_BYTES = 64 << 10
"""A smaller copy to the host is a number somebody looks at: the wait is the matter, not the memory."""


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    scene = evidence.scene
    results = (scene.work_text("target_memory") == "Pageable") & (scene.bytes > SMALL_RESULT_BYTES)
    copies = ((scene.work_text("source_memory") == "Pageable") | results) & (scene.kind == "memcpy")
    if not evidence.per_step(copies):
        return None
    total = float(scene.bytes[evidence.in_steps(copies)].sum()) / evidence.steps
    return Claim(
        f"{evidence.per_step(copies):,.1f} copies a step, {size(total)}, come from or go to pageable memory: each "
        "blocks the CPU until it is staged.",
        evidence.places(copies),
    )


RULE = Rule(
    name="pageable_copy",
    cause="transfer",
    fix="pin_memory",
    how="DataLoader(…, pin_memory=True) and batch.to('cuda', non_blocking=True)",
    look=look,
    least_gain=0.0,
)
