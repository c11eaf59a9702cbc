"""Large tensors copied to the host, where a few numbers would do."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.findings.words import several
from warpline.replay.whatif import Prediction
from warpline.units import duration, size


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    copies = evidence.changed(RULE.fix).work
    if not evidence.per_step(copies):
        return None
    total = float(evidence.scene.bytes[evidence.in_steps(copies)].sum()) / evidence.steps
    return Claim(
        f"Whole tensors go to the host, where an op of the CPU works on them at once: "
        f"{several(evidence.per_step(copies), 'large copy', 'large copies')} a step, {size(total)}, "
        f"{duration(evidence.time_per_step(copies))}.",
        evidence.places(copies),
    )


RULE = Rule(
    name="large_copy_to_host",
    cause="transfer",
    fix="reduce_before_copy",
    how=(
        "Reduce on the device (argmax, mean, topk) and copy only what you look at: logits.argmax(-1).cpu() instead of "
        "logits.cpu().argmax(-1)."
    ),
    look=look,
)
