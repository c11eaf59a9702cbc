"""fp32 matrix products on CUDA cores."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.findings.words import counted
from warpline.replay.interventions.precision import in_double
from warpline.replay.whatif import Prediction
from warpline.units import duration


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    change = evidence.changed(RULE.fix)
    slow = change.work & ~change.gone & ~evidence.scene.kernels_where(in_double)
    if not evidence.per_step(slow):
        return None
    return Claim(
        f"fp32 products run on CUDA cores: {counted(evidence.per_step(slow))} a step, "
        f"{duration(evidence.time_per_step(slow))}.",
        evidence.costliest_places(slow),
    )


RULE = Rule(
    name="fp32_gemm",
    cause="kernel",
    fix="tf32",
    how=(
        "torch.set_float32_matmul_precision('high') before the first product; for convolutions "
        "torch.backends.cudnn.allow_tf32 = True (the default)"
    ),
    look=look,
)
