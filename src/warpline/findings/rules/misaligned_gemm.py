"""Matrix products whose sizes keep them off the fast kernels."""

from __future__ import annotations

import polars as pl

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.findings.words import counted
from warpline.replay.whatif import Prediction
from warpline.units import duration

MOST_CONVOLVING = 0.1
"""Convolutions run as products have shapes of their own, which say nothing about alignment."""


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    odd = evidence.changed(RULE.fix).work
    names = evidence.trace.ops["name"].cast(pl.String).unique()
    convolving = odd & evidence.scene.under_op(*names.filter(names.str.contains("conv")))
    if not evidence.per_step(odd) or evidence.time_per_step(convolving) > MOST_CONVOLVING * evidence.time_per_step(odd):
        return None
    shapes = evidence.costliest_shapes(odd)
    return Claim(
        "Matrix products with sizes that are not multiples of 8 (16-bit) or 4 (fp32), "
        f"{f'such as {shapes}, ' if shapes else ''}run on slower kernels: {counted(evidence.per_step(odd))} a step, "
        f"{duration(evidence.time_per_step(odd))}.",
        evidence.costliest_places(odd),
    )


RULE = Rule(
    name="misaligned_gemm",
    cause="kernel",
    fix="pad",
    how=(
        "Pad the odd size to a multiple of 8, better 64, where it is made: nn.Linear(hidden, -(-vocab // 64) * 64) and "
        "logits[..., :vocab]; for a batch or a sequence, torch.nn.functional.pad."
    ),
    look=look,
)
