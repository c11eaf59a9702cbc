"""The model in float16, on chips whose tensor cores have no bfloat16."""

from __future__ import annotations

from warpline.fixes.claim import Claim
from warpline.fixes.evidence import Evidence
from warpline.fixes.half_precision import kernels_on_fp32, run_in_half, was_made
from warpline.fixes.model import Advice, Fix, Rule
from warpline.replay.graph_edit import GraphEdit
from warpline.replay.patterns.precision import has_only_fp16
from warpline.replay.whatif import Prediction


def apply(edit: GraphEdit, case: int) -> int:
    """Run GEMMs in fp16, and shorten memory-bound kernels."""
    return run_in_half(edit, case, "fp16") if has_only_fp16(edit.labelled) else 0


def fp32_without_tf32(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """FP32 kernels on a chip whose tensor cores take float16 only."""
    return kernels_on_fp32(evidence, FIX.name)


FIX = Fix(
    name="fp16",
    words="fp16",
    summary="The model runs in float16 (autocast with a gradient scaler, or weights in that type).",
    assumptions=(
        (
            "The chip's tensor cores have float16 and no bfloat16 (Volta, and of Turing the listed chips, such as T4), "
            "and the model does not run in half precision already: less than 80 % of the time of GEMMs, "
            "convolutions and attention is in it."
        ),
        (
            "GEMMs and attention run on tensor cores in fp16. Kernels that read and write FP32 move half the bytes, "
            "plus the casts that autocast adds."
        ),
        "Casts between types disappear, because everything is fp16.",
        "No step is repeated because its gradients overflow.",
    ),
    effort="few_lines",
    apply=apply,
    findings=(
        Rule(
            name="fp32_without_tf32",
            cause="kernel",
            summary="FP32 kernels on a chip whose tensor cores need float16",
            look=fp32_without_tf32,
            advice=Advice(
                pytorch=(
                    "scaler = torch.amp.GradScaler('cuda'); with torch.autocast('cuda', torch.float16): loss = "
                    "criterion(model(x), y); scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update() – "
                    "for inference model.half() (it changes the numerics: check the loss)"
                ),
                cuda="Store operands as __half and multiply them with cublasGemmEx (CUDA_R_16F, CUBLAS_COMPUTE_32F).",
                other="Run the model in float16 with a scaled loss (it changes the numerics: check the loss).",
            ),
            most="medium",
        ),
    ),
    needs=("kernel names that contain the precision", "the chip's name"),
    after=("drop_casts",),
    was_made=was_made,
    implies=("channels_last", "batch", "drop_copies", "preallocate", "pad"),
    not_tried="float16 needs a gradient scaler around backward() and the optimizer's step",
)
