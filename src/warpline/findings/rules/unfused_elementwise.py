"""A busy device that reads and writes the same data again and again: fusion does it once."""

from __future__ import annotations

import numpy as np

from warpline.findings.compiled import already_compiled
from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.findings.words import counted, several
from warpline.replay.interventions.allocation import grows
from warpline.replay.whatif import Prediction
from warpline.trace.columns import Bools
from warpline.units import duration

MOST_IDLE = 0.1
"""Above, dispatch is the matter, not the kernels."""
LEAST_KERNELS = 2
MOSTLY = 0.5
"""Where a fix of their own does away with so much of the time of the kernels, they are its matter."""
SOME_GAIN = 1.05


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    change = evidence.changed(RULE.fix)
    if already_compiled(evidence, change.work):
        return None
    chains = change.work
    if evidence.bare_idle_share >= MOST_IDLE or evidence.per_step(chains) < LEAST_KERNELS:
        return None
    if evidence.time_per_step(chains & _done_away_with(evidence)) >= MOSTLY * evidence.time_per_step(chains):
        return None
    return Claim(
        f"{several(evidence.per_step(chains), 'kernel')} a step ({duration(evidence.time_per_step(chains))}) read and "
        f"write the same data one after the other (elementwise, norms, reductions); fused, they would be "
        f"{counted(evidence.per_step(chains & ~change.gone))}.",
        evidence.places(chains),
    )


def _done_away_with(evidence: Evidence) -> Bools:
    """Work that need not be done at all, fused or not: what attention's scores go through, and growing by copying."""
    result = np.zeros(len(evidence.scene.graph), bool)
    for fix, own in (("sdpa", evidence.scene.is_work), ("preallocate", evidence.scene.once(grows))):
        if evidence.gains(fix, SOME_GAIN):
            result |= evidence.changed(fix).work & own
    return result


RULE = Rule(
    name="unfused_elementwise",
    cause="kernel",
    fix="torch_compile",
    how="model = torch.compile(model), or write the chain as one Triton kernel",
    look=look,
    most="medium",
)
