"""The model in half precision: what the fixes for bfloat16 and for float16 share."""

from __future__ import annotations

import numpy as np

from warpline.estimate import CLEAR_GAIN
from warpline.fixes.claim import Claim
from warpline.fixes.evidence import Evidence
from warpline.fixes.step_contents import StepContents
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
    in_double,
    mostly_half,
    shorten_doubles,
)
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


def run_in_half(edit: GraphEdit, case: int, half: str) -> int:
    """Run GEMMs in bf16 or fp16, and shorten memory-bound kernels."""
    labelled = edit.labelled
    if mostly_half(labelled):
        return 0
    usable = labelled.in_steps & ~edit.gone
    changed = shorten_doubles(edit, case)
    single = labelled.once(fp32_products)
    drop_transposes(edit, single & usable)
    doubles = labelled.kernels_where(lambda identity: in_double(identity) and identity.kernel_class in GEMM_CLASSES)
    convert(edit, doubles & usable, "tf32", half, case)
    for nodes, dtype in ((single, "fp32"), (labelled.kernels_where(_in_tf32), "tf32")):
        changed += convert(edit, nodes & usable, dtype, half, case)
    casting = np.flatnonzero(labelled.once(casts) & usable)
    if not changed and not len(casting):
        return 0
    edit.remove_work(casting)
    attention = np.flatnonzero(labelled.kernels_where(_attends_in_fp32) & usable)
    faster = edit.graph.duration[attention] * shares.SDPA_TO_HALF.at(case)
    edit.shorten(attention, faster, labelled.floor_ns(half)[attention])
    moving = labelled.kernels_where(
        lambda identity: identity.kernel_class in MEMORY_CLASSES and identity.dtype.a == "f32"
    )
    chosen = np.flatnonzero(moving & usable & ~edit.gone & ~labelled.within_ranges(OPTIMIZER_RANGE))
    now = edit.graph.duration[chosen]
    edit.shorten(
        chosen, np.maximum(now * shares.HALF_MEMORY.at(case), np.minimum(now, labelled.device.smallest_kernel.at(case)))
    )
    return changed + len(chosen) + len(casting) + len(attention)


def kernels_on_fp32(evidence: Evidence, fix: str) -> Claim | None:
    """FP32 kernels that half precision would make about twice as fast, or more."""
    if evidence.gains("tf32", CLEAR_GAIN):
        return None
    change = evidence.changed(fix)
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
