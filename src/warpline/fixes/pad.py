"""Pads GEMMs to sizes that the fast kernels accept."""

from __future__ import annotations

from collections import Counter

import numpy as np

from warpline.fixes.claim import Claim
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Advice, Fix, Rule
from warpline.fixes.step_contents import StepContents
from warpline.kernels import identify
from warpline.replay.costs import shares
from warpline.replay.graph_edit import GraphEdit
from warpline.replay.patterns.alignment import misaligned
from warpline.replay.whatif import Prediction
from warpline.units import count, duration

MAX_CONVOLUTION_SHARE = 0.1
"""The shapes of convolutions that run as GEMMs do not show the GEMM's alignment."""


def apply(edit: GraphEdit, case: int) -> int:
    """Give misaligned GEMMs the time of aligned ones."""
    labelled = edit.labelled
    chosen = np.flatnonzero(labelled.kernels("gemm") & labelled.in_steps & ~edit.gone & labelled.once(misaligned))
    single = labelled.kernels_where(lambda identity: identity.dtype.a in {"tf32", "f32"})[chosen]
    floor = labelled.floor_ns()[chosen]
    usual = np.where(single, labelled.device.product_ns(floor, "tf32"), labelled.device.product_ns(floor, "bf16"))
    aligned = labelled.device.aligned_ns(edit.graph.duration[chosen])
    edit.shorten(chosen, aligned * shares.PRECISION_SPREAD.at(case), usual)
    return len(chosen)


def misaligned_gemm(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """GEMMs whose sizes rule out the fast kernels."""
    odd = evidence.changed(FIX.name).work
    convolving = odd & evidence.labelled.under_op_where(lambda name: "conv" in name)
    if not evidence.per_step(odd) or evidence.time_per_step(
        convolving
    ) > MAX_CONVOLUTION_SHARE * evidence.time_per_step(odd):
        return None
    shapes = evidence.costliest_shapes(odd)
    return Claim(
        "GEMMs with sizes that are not multiples of 8 (16-bit) or 4 (fp32), "
        f"{f'such as {shapes}, ' if shapes else ''}run on slower kernels: {count(evidence.per_step(odd))} "
        f"{evidence.noun.per}, {duration(evidence.time_per_step(odd))}.",
        evidence.costliest_places(odd),
    )


def was_made(before: StepContents, after: StepContents) -> bool:
    """Matmul kernels for unaligned operands gave way to others of the same type, and nothing else changed."""
    gone, new = before.kernels - after.kernels, after.kernels - before.kernels
    if not gone or gone.total() != new.total() or before.matrix_types != after.matrix_types:
        return False
    return all(identify(name).kernel_class == "gemm" for name in (*gone, *new)) and _unaligned(gone) > _unaligned(new)


def _unaligned(kernels: Counter[str]) -> int:
    return sum(times for name, times in kernels.items() if "align1" in name or "align2" in name)


FIX = Fix(
    name="pad",
    words="padded sizes",
    summary=("GEMM sizes are padded to a multiple of 8 (16-bit) or 4 (fp32), so that the fast kernels apply."),
    assumptions=(
        (
            "Rows of an operand or of the result do not start at multiples of 16 bytes in memory: the shapes and "
            "strides of the op around a GEMM show this, or else the kernel's name."
        ),
        ("An aligned GEMM takes at least as long as a square one with its floor; fp32 GEMMs on CUDA cores stay."),
        "The cost of padding is negligible: the weights are padded once.",
    ),
    effort="few_lines",
    apply=apply,
    findings=(
        Rule(
            name="misaligned_gemm",
            cause="kernel",
            summary="odd sizes rule out the fast GEMM kernels",
            look=misaligned_gemm,
            advice=Advice(
                pytorch=(
                    "Pad the odd size to a multiple of 8, better 64, where it is defined: nn.Linear(hidden, -(-vocab "
                    "// 64) * 64) and logits[..., :vocab]; for a batch or a sequence, torch.nn.functional.pad."
                ),
                cuda=(
                    "Give cuBLAS leading dimensions and sizes in multiples of 16 bytes: allocate rows with "
                    "cudaMallocPitch, or pad the matrices."
                ),
                neutral="Pad the odd size to a multiple of 8, better 64.",
            ),
        ),
    ),
    needs=("the shapes of ops (record_shapes=True), or kernel names that contain the alignment",),
    after=("channels_last", "sdpa"),
    same_work=True,
    was_made=was_made,
    not_tried="shapes are chosen in the source",
)
