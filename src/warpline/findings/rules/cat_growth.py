"""Buffers that are made anew in every step: grown by concatenation, filled with zeros, fetched from the driver."""

from __future__ import annotations

import numpy as np

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.findings.words import listed, several
from warpline.replay.interventions.allocation import FILLS, TURNING, joins
from warpline.replay.whatif import Prediction
from warpline.trace import api_names
from warpline.units import duration


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    change = evidence.changed(RULE.fix)
    joined = change.work & evidence.scene.once(joins)
    fills = change.work & change.gone & evidence.scene.under_op(*FILLS)
    constants = change.work & change.gone & ~fills & ~joined & np.isin(evidence.scene.op_name, list(TURNING))
    kinds = (
        ("concatenation", "concatenations", joined),
        ("fill of a large buffer", "fills of large buffers", fills),
        ("kernel that makes a mask of one", "kernels that make masks of them", constants),
        ("copy into one", "copies into them", change.work & change.gone & ~fills & ~joined & ~constants),
    )
    parts = [
        f"{several(evidence.per_step(nodes), one, more)} ({duration(evidence.time_per_step(nodes))})"
        for one, more, nodes in kinds
        if evidence.per_step(nodes)
    ]
    calls = evidence.per_step(change.host & evidence.scene.calls_like(api_names.ALLOCATION))
    parts += [several(calls, "allocation by the driver", "allocations by the driver")] if calls else []
    if not parts:
        return None
    return Claim(f"Buffers are made anew in every step: {listed(parts)}.", evidence.places(change.work))


RULE = Rule(
    name="cat_growth",
    cause="memory",
    fix="preallocate",
    how=(
        "Allocate the buffer (a KV cache, say) once at its final size, cache = torch.empty(…, longest, …), and write "
        "into it: cache[:, :, pos] = new; for results, torch.empty once and out[i] = y instead of torch.cat; "
        "a mask once, with self.register_buffer."
    ),
    look=look,
    most="medium",
)
