"""GEMMs and convolutions in TF32 on tensor cores instead of FP32 or FP64."""

from __future__ import annotations

import numpy as np

from warpline.capture.trial.use import ProgramUse
from warpline.fixes.claim import Claim
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Advice, Fix, Rule
from warpline.fixes.step_contents import StepContents
from warpline.fixes.tryable import TryableChange, no_fp32_matmul, no_gpu
from warpline.fixes.words import listed
from warpline.replay.graph_edit import GraphEdit
from warpline.replay.patterns.precision import (
    GEMM_CLASSES,
    chosen_in_fp32,
    convert,
    drop_transposes,
    fp32_products,
    has_tf32,
    in_double,
    shorten_doubles,
)
from warpline.replay.whatif import Prediction
from warpline.trace.arrays import Bools
from warpline.units import count, duration, several

MIN_SAVED_SHARE = 0.5
"""Share of the saved time that a rule's kernels must have: the sentence beside a gain is about what gives it."""


def apply(edit: GraphEdit, case: int) -> int:
    """Run GEMMs on CUDA cores in TF32."""
    labelled = edit.labelled
    if not has_tf32(labelled):
        return 0
    nodes = labelled.once(fp32_products) & ~labelled.once(chosen_in_fp32) & labelled.in_steps & ~edit.gone
    drop_transposes(edit, nodes)
    changed = convert(edit, nodes, "fp32", "tf32", case)
    return changed + shorten_doubles(edit, case)


def double_precision(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """FP64 kernels, which are rarely intended."""
    changed, labelled = evidence.changed(FIX.name).work, evidence.labelled
    doubles = changed & labelled.kernels_where(in_double)
    if not _give_the_gain(doubles, evidence):
        return None
    products = doubles & labelled.kernels(*GEMM_CLASSES)
    parts = [
        f"{several(evidence.per_step(nodes), noun)} ({duration(evidence.time_per_step(nodes))})"
        for nodes, noun in ((products, "GEMM"), (doubles & ~products, "other kernel"))
        if evidence.per_step(nodes)
    ]
    return Claim(
        f"{listed(parts)} {evidence.noun.per} run in FP64, where FP32 is usually intended.",
        evidence.costliest_places(doubles),
    )


def fp32_gemm(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """FP32 GEMMs on CUDA cores."""
    change = evidence.changed(FIX.name)
    slow = change.work & ~change.gone & ~evidence.labelled.kernels_where(in_double)
    if not evidence.per_step(slow) or not _give_the_gain(slow, evidence):
        return None
    return Claim(
        f"FP32 GEMMs run on CUDA cores: {count(evidence.per_step(slow))} {evidence.noun.per}, "
        f"{duration(evidence.time_per_step(slow))}.",
        evidence.costliest_places(slow),
    )


def _give_the_gain(nodes: Bools, evidence: Evidence) -> bool:
    """Whether most of the time that the fix saves is saved in these kernels."""
    change = evidence.changed(FIX.name)
    saved = np.where(change.work, change.saved_ns, 0.0)
    return bool(nodes.any()) and float(saved[nodes].sum()) >= MIN_SAVED_SHARE * float(saved.sum())


def was_made(before: StepContents, after: StepContents) -> bool:
    """Matmuls in TF32 take the place of others in FP32 or FP64."""
    old, new = before.matrix_types, after.matrix_types
    return old["tf32"] < new["tf32"] and new["f32"] + new["f64"] < old["f32"] + old["f64"]


def why_not_tried(use: ProgramUse) -> str | None:
    """Where it would change nothing."""
    if use.tf32:
        return "TF32 is allowed already"
    return no_gpu(use) or no_fp32_matmul(use)


FIX = Fix(
    name="tf32",
    words="TF32",
    summary="GEMMs and convolutions in FP32 or FP64 run on tensor cores in TF32, other FP64 kernels in FP32.",
    assumptions=(
        (
            "The chip is NVIDIA's, of compute capability 8.0 or newer, and the inputs are known to be FP32, by the "
            "kernel's name or by the op's types."
        ),
        (
            "Where other convolutions of the recording run in TF32, it is allowed, and cuDNN chose FP32 for those that "
            "do not: they do not change."
        ),
        "A mantissa of ten bits is enough for the GEMMs, and FP32 is enough for FP64 kernels.",
        ("A GEMM gains what square GEMMs of the same duration gain on an H200, never beyond the roofline."),
    ),
    effort="setting",
    apply=apply,
    findings=(
        Rule(
            name="double_precision",
            cause="kernel",
            summary="FP64 kernels, often from NumPy arrays",
            look=double_precision,
            words="FP32 and TF32 instead of FP64",
            advice=Advice(
                pytorch=(
                    "Create tensors in FP32: torch.from_numpy(x).float(), torch.tensor(values, "
                    "dtype=torch.float32); and torch.set_float32_matmul_precision('high') before the first matmul. "
                    "One float64 tensor is enough: results computed from it become float64."
                ),
                cuda=(
                    "Compute in float where double is not needed: literals with an f suffix, float variables, "
                    "cublasSgemm instead of cublasDgemm."
                ),
                other="Create arrays in FP32; NumPy's default is FP64.",
                neutral="Compute in FP32 where FP64 is not needed: arrays, literals and intermediate results.",
            ),
        ),
        Rule(
            name="fp32_gemm",
            cause="kernel",
            summary="FP32 GEMMs on CUDA cores, tensor cores idle",
            look=fp32_gemm,
            advice=Advice(
                pytorch=(
                    "torch.set_float32_matmul_precision('high') before the first matmul; for convolutions "
                    "torch.backends.cudnn.allow_tf32 = True (the default)"
                ),
                cuda=(
                    "cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH), or cublasGemmEx with "
                    "CUBLAS_COMPUTE_32F_FAST_TF32; for cuDNN, cudnnSetConvolutionMathType(desc, "
                    "CUDNN_TENSOR_OP_MATH)."
                ),
                other=(
                    "Allow TF32 for matmuls: jax.config.update('jax_default_matmul_precision', "
                    "'tensorfloat32'), or tf.config.experimental.enable_tensor_float_32_execution(True)."
                ),
            ),
        ),
    ),
    needs=("kernel names that contain the precision", "the chip's compute capability"),
    after=("drop_casts",),
    was_made=was_made,
    implies=("channels_last", "batch", "drop_copies", "preallocate", "pad"),
    tried=(
        TryableChange(
            "tf32",
            "FP32 matmuls in TF32",
            "torch.set_float32_matmul_precision('high')",
            why_not_tried,
            precision="TF32",
        ),
    ),
)
