"""Memory given back to the driver and fetched again, every step."""

from __future__ import annotations

import numpy as np

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.findings.words import several
from warpline.replay.interventions.allocation import collecting
from warpline.replay.whatif import Prediction
from warpline.trace import api_names
from warpline.units import duration


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    host = evidence.changed(RULE.fix).host
    frees, allocations = (
        host & evidence.scene.calls_like(pattern) for pattern in (api_names.EMPTY_CACHE_FREE, api_names.ALLOCATION)
    )
    collected = float(np.dot(collecting(evidence.scene), evidence.scene.graph.duration)) / evidence.steps
    garbage = f", and collecting garbage before it takes {duration(collected)}" if collected else ""
    return Claim(
        f"Memory is freed and allocated anew within the step: {several(evidence.per_step(frees), 'free')} and "
        f"{several(evidence.per_step(allocations), 'allocation')} hold the CPU for "
        f"{duration(evidence.time_in_calls(frees | allocations))}{garbage}.",
        evidence.host_places(frees | allocations),
    )


RULE = Rule(
    name="allocator_churn",
    cause="memory",
    fix="no_empty_cache",
    how=(
        "Remove torch.cuda.empty_cache() and gc.collect() from the loop, and let the allocator keep what it has; "
        "against fragmentation, PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."
    ),
    look=look,
)
