"""GEMM kernels that were written for an older GPU architecture."""

from __future__ import annotations

import re

import numpy as np

from warpline.fixes.claim import Claim
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Advice, Fix, Rule
from warpline.fixes.words import listed
from warpline.kernels import KernelIdentity, identify
from warpline.replay.costs import shares
from warpline.replay.graph_edit import GraphEdit
from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.patterns.alignment import misaligned
from warpline.replay.whatif import Prediction
from warpline.trace.arrays import NONE, Bools
from warpline.units import count, duration

WELL_ABOVE = 1.5
"""A kernel is slow above this multiple of a square GEMM with the same floor on an H200."""
MIN_STEP_SHARE = 0.05
"""Share of the step; old kernels that take less are not reported."""


def old_kernels(labelled: LabelledGraph) -> Bools:
    """GEMMs whose tensor-core kernels were written for an older generation than the device.

    Misaligned GEMMs, and those on CUDA cores, belong to other fixes. Convolutions are excluded, because
    measured GEMMs do not show what they could reach.
    """
    majors = labelled.trace.devices.compute_major
    majors = majors[majors != NONE]
    if not len(majors):
        return np.zeros(len(labelled.graph), bool)

    def old(identity: KernelIdentity) -> bool:
        made_for = re.fullmatch(r"sm(\d+)\d", identity.arch or "")
        matrix = identity.kernel_class == "gemm" and identity.tensor_core is True
        return matrix and made_for is not None and int(made_for[1]) < majors[0]

    convolving = labelled.under_op_where(lambda name: "conv" in name)
    return labelled.kernels_where(old) & ~labelled.once(misaligned) & ~convolving


def apply(edit: GraphEdit, case: int) -> int:
    """Give slow old kernels the usual time of a GEMM of their size."""
    labelled = edit.labelled
    old = np.flatnonzero(labelled.once(old_kernels) & labelled.in_steps & ~edit.gone)
    floor = labelled.floor_ns()
    single = labelled.kernels_where(lambda identity: identity.dtype.a in {"tf32", "f32"})
    for dtype, kind in (("tf32", single), ("bf16", ~single)):
        kernels = old[kind[old] & (floor[old] > 0)]
        usual = labelled.device.product_ns(floor[kernels], dtype) * shares.PRECISION_SPREAD.at(case)
        slow = edit.graph.duration[kernels] > WELL_ABOVE * usual
        edit.shorten(kernels[slow], usual[slow], floor[kernels[slow]])
    return len(old)


def old_architecture(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """GEMM kernels of an older architecture than the device."""
    old, slow = evidence.labelled.once(old_kernels), evidence.changed(FIX.name).work
    chosen = slow if evidence.per_step(slow) else old
    time = evidence.time_per_step(chosen)
    if time < MIN_STEP_SHARE * evidence.step_ns:
        return None
    names = evidence.labelled.name[evidence.in_steps(chosen)].present()
    made_for = sorted({str(identify(name).arch) for name in names})
    how_slow = (
        "slower than GEMMs of that size should be" if evidence.per_step(slow) else "as fast as other GEMMs of that size"
    )
    return Claim(
        f"GEMM kernels written for {listed(made_for)} run on a newer GPU, {how_slow}: "
        f"{count(evidence.per_step(chosen))} {evidence.noun.per}, {duration(time)}.",
        evidence.costliest_places(chosen),
    )


FIX = Fix(
    name="newer_kernels",
    words="kernels for this GPU's architecture",
    summary=("GEMMs that run tensor-core kernels of an older architecture run kernels for the device's architecture."),
    assumptions=(
        (
            "A GEMM of known size takes as long as a square GEMM with the same floor on an H200, never "
            "less than the roofline; it changes only if it takes at least 1.5 times that now."
        ),
        "If no kernel is that slow, nothing changes: old kernels are often as fast.",
    ),
    effort="setting",
    apply=apply,
    findings=(
        Rule(
            name="old_architecture",
            cause="kernel",
            summary="GEMMs on kernels that were written for an older GPU",
            look=old_architecture,
            advice=Advice(
                pytorch=(
                    "Let a newer library choose the kernel: a torch built for your CUDA version (python -m "
                    "torch.utils.collect_env), torch.backends.cuda.preferred_blas_library('cublaslt'), or "
                    "torch.compile(model, mode='max-autotune'); layouts and sizes in multiples of 64 make more "
                    "kernels eligible."
                ),
                cuda=(
                    "Compile for the GPU (nvcc -arch=native), link a newer cuBLAS or CUTLASS, and use cublasLt "
                    "with its heuristics."
                ),
                other="Install a build for your CUDA version and GPU.",
            ),
            most="medium",
            least_gain=0.0,
        ),
    ),
    needs=(
        "kernel names that contain the architecture",
        "the chip's compute capability",
        "the shapes of ops (record_shapes=True)",
    ),
    after=("drop_copies",),
    same_work=True,
    not_tried="it needs another version of the library",
)
