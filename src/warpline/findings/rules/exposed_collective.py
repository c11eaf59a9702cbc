"""Communication that nothing hides."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.findings.words import counted
from warpline.replay.whatif import Prediction
from warpline.units import duration


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    moved = evidence.changed(RULE.fix).moved
    if not evidence.per_step(moved):
        return None
    return Claim(
        f"Collectives are not hidden: {counted(evidence.per_step(moved))} a step, "
        f"{duration(evidence.time_per_step(moved))}, of which {duration(evidence.exposed_per_step(moved))} with no "
        "other kernel beside them.",
        evidence.places(moved),
    )


RULE = Rule(
    name="exposed_collective",
    cause="comm",
    fix="overlap_comm",
    how=(
        "Let communication run beside backward: DistributedDataParallel(model, gradient_as_bucket_view=True, "
        "bucket_cap_mb=25) and model.no_sync() while gradients accumulate; with FSDP2, fully_shard each layer and "
        "layer.set_modules_to_forward_prefetch([next_layer])."
    ),
    look=look,
    most="medium",
)
