"""Memory given back to the driver and fetched again, every step."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.replay.whatif import Prediction
from warpline.units import duration


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    waited = evidence.idle["memory"] / evidence.steps
    return Claim(
        f"Memory is freed and allocated anew within the step: the GPU is idle for {duration(waited)} of it meanwhile.",
        evidence.sync_places("free"),
    )


RULE = Rule(
    name="allocator_churn",
    cause="memory",
    fix="no_empty_cache",
    how=("Remove torch.cuda.empty_cache() from the loop; let the caching allocator keep what it has."),
    look=look,
)
