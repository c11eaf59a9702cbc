"""The model in bfloat16."""

from __future__ import annotations

from warpline.fixes.claim import Claim
from warpline.fixes.evidence import Evidence
from warpline.fixes.half_precision import kernels_on_fp32, run_in_half, was_made
from warpline.fixes.model import Advice, Fix, Rule
from warpline.fixes.tryable import TryableChange, no_fp32_matmul
from warpline.replay.graph_edit import GraphEdit
from warpline.replay.patterns.precision import has_bf16
from warpline.replay.whatif import Prediction


def apply(edit: GraphEdit, case: int) -> int:
    """Run GEMMs in bf16, and shorten memory-bound kernels."""
    return run_in_half(edit, case, "bf16") if has_bf16(edit.labelled) else 0


def full_precision(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """FP32 kernels that bf16 would make about twice as fast."""
    return kernels_on_fp32(evidence, FIX.name)


FIX = Fix(
    name="bf16",
    words="bf16",
    summary="The model runs in bfloat16 (autocast, or weights in that type).",
    assumptions=(
        (
            "The chip has bf16 (NVIDIA from compute capability 8.0 on, AMD Instinct), and the model does not run in "
            "half precision already: less than 80 % of the time of GEMMs, convolutions and attention is in it."
        ),
        (
            "GEMMs and attention run on tensor cores in bf16. Kernels that read and write FP32 move half the bytes, "
            "plus the casts that autocast adds."
        ),
        "Casts between types disappear, because everything is bf16.",
    ),
    effort="few_lines",
    apply=apply,
    findings=(
        Rule(
            name="full_precision",
            cause="kernel",
            summary="FP32 kernels, or casts back and forth",
            look=full_precision,
            advice=Advice(
                pytorch=(
                    "with torch.autocast('cuda', torch.bfloat16): out = model(x); loss = criterion(out, y) – for "
                    "inference model.to(torch.bfloat16) (it changes the numerics: check the loss)"
                ),
                cuda=(
                    "Store operands as __nv_bfloat16 and multiply them with cublasGemmEx (CUDA_R_16BF, "
                    "CUBLAS_COMPUTE_32F)."
                ),
                other="Run the model in bfloat16 (it changes the numerics: check the loss).",
            ),
            most="medium",
        ),
    ),
    needs=("kernel names that contain the precision", "the chip's compute capability"),
    after=("drop_casts",),
    was_made=was_made,
    implies=("tf32", "channels_last", "batch", "drop_copies", "preallocate", "pad"),
    tried=(
        TryableChange(
            "bf16",
            "forwards and losses under autocast to bfloat16",
            "with torch.autocast(x.device.type, torch.bfloat16): loss = …  # around the forward and the loss",
            no_fp32_matmul,
            precision="bfloat16",
        ),
    ),
)
