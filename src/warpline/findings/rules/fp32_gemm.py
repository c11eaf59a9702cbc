"""fp32 matrix products on CUDA cores."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.replay.whatif import Prediction
from warpline.units import duration


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    slow = evidence.scene.kernels_where(
        lambda kernel: kernel.kernel_class in {"gemm", "conv"} and kernel.tensor_core is False
    )
    time = evidence.time_per_step(slow)
    return Claim(
        f"fp32 matrix products run on CUDA cores for {duration(time)} a step; tensor cores do them several times "
        "faster in TF32.",
        evidence.places(slow),
    )


RULE = Rule(
    name="fp32_gemm",
    cause="kernel",
    fix="tf32",
    how="torch.set_float32_matmul_precision('high')",
    look=look,
)
