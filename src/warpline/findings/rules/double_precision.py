"""Kernels that compute in 64 bits, which few programs mean to."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.findings.words import listed, several
from warpline.replay.interventions.precision import MATRIX_CLASSES, in_double
from warpline.replay.whatif import Prediction
from warpline.units import duration

LEAST_PART = 0.1
"""Of the time that the fix changes; less than that, and the gain is that of fp32 products."""


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    changed, scene = evidence.changed(RULE.fix).work, evidence.scene
    doubles = changed & scene.kernels_where(in_double)
    time = evidence.time_per_step(doubles)
    if not time or time < LEAST_PART * evidence.time_per_step(changed):
        return None
    products = doubles & scene.kernels(*MATRIX_CLASSES)
    parts = [
        f"{several(evidence.per_step(nodes), noun)} ({duration(evidence.time_per_step(nodes))})"
        for nodes, noun in ((products, "product"), (doubles & ~products, "other kernel"))
        if evidence.per_step(nodes)
    ]
    return Claim(
        f"{listed(parts)} a step compute in 64 bits, where 32 are usually meant.", evidence.costliest_places(doubles)
    )


RULE = Rule(
    name="double_precision",
    cause="kernel",
    fix="tf32",
    how=(
        "Make tensors in 32 bits: torch.from_numpy(x).float(), torch.tensor(values, dtype=torch.float32); and "
        "torch.set_float32_matmul_precision('high') before the first product. One tensor in float64 is enough: what it "
        "touches becomes float64."
    ),
    look=look,
)
