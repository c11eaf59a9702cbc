"""The model in bfloat16."""

from __future__ import annotations

import numpy as np

from warpline.estimate import CLEAR_GAIN
from warpline.fixes.claim import Claim
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Advice, Fix, Rule
from warpline.fixes.step_contents import StepContents
from warpline.fixes.tryable import TryableChange, no_fp32_matmul
from warpline.fixes.words import listed
from warpline.kernels import KernelIdentity
from warpline.library_names import OPTIMIZER_RANGE
from warpline.replay.costs import shares
from warpline.replay.graph_edit import GraphEdit
from warpline.replay.patterns.casts import casts
from warpline.replay.patterns.precision import (
    GEMM_CLASSES,
    HALF_TYPES,
    convert,
    drop_transposes,
    fp32_products,
    has_bf16,
    in_double,
    mostly_half,
    shorten_doubles,
)
from warpline.replay.whatif import Prediction
from warpline.trace.arrays import Bools
from warpline.units import duration

PRODUCTS = {"gemm": "GEMMs", "conv": "convolutions", "attention": "attention"}
"""Classes of kernels that multiply, and what a claim calls them."""
WIDE_TYPES = {"f32", "tf32", "f64"}
MEMORY_CLASSES = ("elementwise", "norm", "softmax", "reduction", "layout", "memory", "pooling")


def _attends_in_fp32(identity: KernelIdentity) -> bool:
    return identity.kernel_class == "attention" and identity.dtype.a == "f32"


def _in_tf32(identity: KernelIdentity) -> bool:
    single = identity.dtype.a == "tf32" or identity.dtype.out == "f32"
    return identity.kernel_class in GEMM_CLASSES and identity.tensor_core is True and single


def apply(edit: GraphEdit, case: int) -> int:
    """Run GEMMs in bf16, and shorten memory-bound kernels."""
    labelled = edit.labelled
    if not has_bf16(labelled) or mostly_half(labelled):
        return 0
    usable = labelled.in_steps & ~edit.gone
    changed = shorten_doubles(edit, case)
    single = labelled.once(fp32_products)
    drop_transposes(edit, single & usable)
    doubles = labelled.kernels_where(lambda identity: in_double(identity) and identity.kernel_class in GEMM_CLASSES)
    convert(edit, doubles & usable, "tf32", "bf16", case)
    for nodes, dtype in ((single, "fp32"), (labelled.kernels_where(_in_tf32), "tf32")):
        changed += convert(edit, nodes & usable, dtype, "bf16", case)
    casting = np.flatnonzero(labelled.once(casts) & usable)
    if not changed and not len(casting):
        return 0
    edit.remove_work(casting)
    attention = np.flatnonzero(labelled.kernels_where(_attends_in_fp32) & usable)
    faster = edit.graph.duration[attention] * shares.SDPA_TO_HALF.at(case)
    edit.shorten(attention, faster, labelled.floor_ns("bf16")[attention])
    moving = labelled.kernels_where(
        lambda identity: identity.kernel_class in MEMORY_CLASSES and identity.dtype.a == "f32"
    )
    chosen = np.flatnonzero(moving & usable & ~edit.gone & ~labelled.within_ranges(OPTIMIZER_RANGE))
    now = edit.graph.duration[chosen]
    edit.shorten(
        chosen, np.maximum(now * shares.HALF_MEMORY.at(case), np.minimum(now, labelled.device.smallest_kernel.at(case)))
    )
    return changed + len(chosen) + len(casting) + len(attention)


def full_precision(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """FP32 kernels that bf16 would make about twice as fast."""
    if evidence.gains("tf32", CLEAR_GAIN):
        return None
    change = evidence.changed(FIX.name)
    single = change.work & ~evidence.labelled.kernels_where(in_double)
    products = single & evidence.labelled.kernels(*PRODUCTS)
    casting = single & change.gone
    moving = single & ~products & ~casting
    parts = [
        f"{what} {duration(evidence.time_per_step(nodes))}"
        for what, nodes in (
            (_named(evidence, products), products),
            ("other kernels", moving),
            ("casts between types", casting),
        )
        if evidence.per_step(nodes)
    ]
    if not parts:
        return None
    return Claim(
        f"Kernels on FP32 data take {duration(evidence.time_per_step(single))} {evidence.noun.per} "
        f"({', '.join(parts)}).",
        evidence.costliest_places(single),
    )


def _named(evidence: Evidence, products: Bools) -> str:
    """What the kernels multiply with, and whether in TF32: GEMMs, or convolutions and attention in TF32."""
    kinds = listed(words for kind, words in PRODUCTS.items() if (products & evidence.labelled.kernels(kind)).any())
    return f"{kinds} in TF32" if not (products & ~evidence.labelled.kernels_where(_in_tf32)).any() else kinds


def was_made(before: StepContents, after: StepContents) -> bool:
    """Matmuls in half precision take the place of others in single or double precision."""
    old, new = before.matrix_types, after.matrix_types
    more_narrow = sum(old[kind] for kind in HALF_TYPES) < sum(new[kind] for kind in HALF_TYPES)
    return more_narrow and sum(new[kind] for kind in WIDE_TYPES) < sum(old[kind] for kind in WIDE_TYPES)


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
