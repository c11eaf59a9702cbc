"""Convolutions in channels_last layout."""

from __future__ import annotations

import numpy as np

from warpline.fixes.claim import Claim
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Advice, Fix, Rule
from warpline.fixes.step_contents import StepContents, is_gone
from warpline.fixes.tryable import TryableChange, no_convolution
from warpline.fixes.words import listed
from warpline.kernels import KernelIdentity
from warpline.replay.costs import shares
from warpline.replay.costs.cost import PESSIMISTIC
from warpline.replay.graph_edit import GraphEdit
from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.patterns.precision import has_tensor_cores
from warpline.replay.whatif import Prediction
from warpline.trace.arrays import Bools
from warpline.units import duration, several
from warpline.work.parse import json_list


def _transposing(identity: KernelIdentity) -> bool:
    return identity.op in {"nchw_to_nhwc", "nhwc_to_nchw"}


def _channels_first(identity: KernelIdentity) -> bool:
    channels_last = any(layout in identity.name.lower() for layout in ("nhwc", "ndhwc"))
    return identity.kernel_class == "conv" and not channels_last


def _batch_norm_channels_first(identity: KernelIdentity) -> bool:
    return "batch_norm" in identity.name and "channels_last" not in identity.name


def _along_one_dimension(labelled: LabelledGraph) -> Bools:
    """Kernels of 1-D convolutions and norms: tensors of three dimensions have no channels_last layout."""
    flat = labelled.op_shapes.where(_has_three_dimensions)
    return flat | labelled.under_op("aten::conv1d", "aten::conv_transpose1d")


def _has_three_dimensions(shapes: str) -> bool:
    first = next(iter(json_list(shapes)), None)
    return isinstance(first, list) and len(first) == 3 and all(isinstance(size, int) for size in first)


def apply(edit: GraphEdit, case: int) -> int:
    """Remove the transposes, and speed up channels-first convolutions."""
    labelled = edit.labelled
    usable = labelled.in_steps & ~edit.gone & ~labelled.once(_along_one_dimension)
    transposes = np.flatnonzero(labelled.kernels_where(_transposing) & usable)
    first = np.flatnonzero(labelled.kernels_where(_channels_first) & usable & has_tensor_cores(labelled))
    if not len(transposes) + len(first):
        return 0
    edit.remove_work_only(transposes)
    if case != PESSIMISTIC or not len(transposes):
        now = edit.graph.duration[first]
        edit.shorten(first, now * shares.CHANNELS_LAST.at(case), labelled.floor_ns()[first])
    norms = np.flatnonzero(labelled.kernels_where(_batch_norm_channels_first) & usable & has_tensor_cores(labelled))
    edit.shorten(norms, edit.graph.duration[norms] * shares.BATCH_NORM_CHANNELS_LAST.at(case))
    return len(transposes) + len(first) + len(norms)


def channels_first(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Convolutions in channels-first layout, which is slow on tensor cores."""
    change = evidence.changed(FIX.name)
    transposes, norms = change.work & change.gone, evidence.labelled.kernels("norm")
    remaining = change.work & ~change.gone
    parts = [
        f"{several(evidence.per_step(nodes), *noun)} ({duration(evidence.time_per_step(nodes))})"
        for nodes, *noun in (
            (transposes, "transpose kernel"),
            (remaining & ~norms, "convolution"),
            (remaining & norms, "norm kernel", "norm kernels"),
        )
        if evidence.per_step(nodes)
    ]
    if not parts:
        return None
    return Claim(f"Convolutions run channels-first: {listed(parts)} {evidence.noun.per}.", evidence.places(change.work))


def was_made(before: StepContents, after: StepContents) -> bool:
    """The same convolutions without the kernels that change the layout."""
    same = before.count("conv") == after.count("conv") > 0 and before.matrix_types == after.matrix_types
    return same and is_gone(before.count("layout"), after.count("layout"))


FIX = Fix(
    name="channels_last",
    words="channels_last",
    summary="Convolutions take tensors in channels_last layout (memory_format=torch.channels_last).",
    assumptions=(
        (
            "Kernels that transpose between the layouts disappear, and channels-first convolutions and batch norms "
            "gain what was measured on an H200."
        ),
        (
            "In the worst case batch norms gain the least that was measured, and so do convolutions, unless transpose "
            "kernels disappear: then they gain nothing."
        ),
        "Without tensor cores (older chips, AMD) only the transpose kernels disappear.",
        "1-D convolutions (conv1d) do not change: their tensors have no such layout.",
    ),
    effort="setting",
    apply=apply,
    findings=(
        Rule(
            name="channels_first",
            cause="kernel",
            summary="convolutions that transpose their tensors back and forth",
            look=channels_first,
            advice=Advice(
                pytorch=(
                    "model = model.to(memory_format=torch.channels_last), once, and every input x = x.to('cuda', "
                    "memory_format=torch.channels_last)"
                ),
                cuda="Describe tensors to cuDNN as CUDNN_TENSOR_NHWC, and keep that layout from layer to layer.",
            ),
        ),
    ),
    needs=("kernel names that contain the layout",),
    after=("bf16", "fp16", "tf32"),
    was_made=was_made,
    tried=(
        TryableChange(
            "channels_last",
            "models with convolutions and their images in channels_last",
            "model = model.to(memory_format=torch.channels_last); x = x.to(memory_format=torch.channels_last)"
            "  # before DistributedDataParallel(model)",
            no_convolution,
            draws_otherwise=True,
        ),
    ),
)
