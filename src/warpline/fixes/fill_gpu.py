"""Spreads long kernels with too few blocks over the device."""

from __future__ import annotations

import numpy as np

from warpline.estimate import CLEAR_GAIN
from warpline.fixes.claim import Claim
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Advice, Fix, Rule
from warpline.fixes.words import listed
from warpline.replay.costs.cost import Cost
from warpline.replay.graph_edit import GraphEdit
from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.patterns.grids import LIBRARY_CLASSES, Grids
from warpline.replay.whatif import Prediction
from warpline.trace.arrays import Bools, Floats
from warpline.units import count, duration

MIN_OPS_WITH_FEW_BLOCKS = 5.0
"""A kernel of few blocks that takes less than so many ops of the host is bound by its latency."""
MIN_SLOWDOWN_WITH_TAIL, MIN_SLOWDOWN_WITH_FEW_BLOCKS = 1.5, 5.0
"""A kernel qualifies above this multiple of its floor: with a tail, and with few blocks."""
LEFT_BY_SPREADING = Cost(0.0, 0.01, 1.0, "a scan on four rows and norms over eight, spread over an H200")
LEFT_BY_OTHER_TILES = Cost(0.0, 0.5, 1.0, "not measured yet: a cautious range")
"""Share of the time lost to empty multiprocessors that remains."""


def empty_kernels(labelled: LabelledGraph, floor: Floats) -> tuple[Bools, Bools]:
    """Kernels far above their floors: those with few blocks, and those with a tail."""
    grids, length = labelled.once(Grids), labelled.graph.duration
    usable = labelled.in_steps & labelled.is_kernel & (floor > 0)
    few = usable & grids.few() & ~labelled.kernels(*LIBRARY_CLASSES)
    few &= length > MIN_OPS_WITH_FEW_BLOCKS * labelled.host.launched_op.expected
    few &= length > MIN_SLOWDOWN_WITH_FEW_BLOCKS * floor
    tails = usable & grids.tails() & ~labelled.kernels("comm")
    tails &= (length > labelled.host.long_kernel.expected) & (length > MIN_SLOWDOWN_WITH_TAIL * floor)
    return few, tails


def apply(edit: GraphEdit, case: int) -> int:
    """Shorten kernels that leave multiprocessors empty, never below the roofline."""
    labelled, changed = edit.labelled, 0
    floor, empty = labelled.floor_ns(), 1 - labelled.once(Grids).used()
    for kernels, left in zip(empty_kernels(labelled, floor), (LEFT_BY_SPREADING, LEFT_BY_OTHER_TILES), strict=True):
        chosen = np.flatnonzero(kernels & ~edit.gone)
        now = edit.graph.duration[chosen]
        edit.shorten(chosen, now * (1 - empty[chosen] * (1 - left.at(case))), floor[chosen])
        changed += len(chosen)
    return changed


def small_grid(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Long kernels that leave most multiprocessors idle."""
    empty, grids = evidence.changed(FIX.name).work, evidence.labelled.once(Grids)
    if evidence.gains("streams", CLEAR_GAIN) and (empty & evidence.changed("streams").work).any():
        return None
    few, tails = empty & grids.few(), empty & grids.tails()
    parts = [
        f"{count(evidence.per_step(nodes))} {evidence.noun.per} {what} ({duration(evidence.time_per_step(nodes))})"
        for what, nodes in (
            (f"with fewer blocks than half of the {grids.sms:.0f} multiprocessors", few),
            ("whose last wave of blocks is nearly empty", tails),
        )
        if evidence.per_step(nodes)
    ]
    if not parts:
        return None
    return Claim(f"Long kernels leave most of the GPU idle: {listed(parts)}.", evidence.costliest_places(empty))


FIX = Fix(
    name="fill_gpu",
    words="more blocks",
    summary=(
        "Long kernels with too few blocks use the whole device, and kernels with a nearly empty last wave get "
        "other tiles."
    ),
    assumptions=(
        (
            "A kernel with few blocks, far above its roofline floor, scales with their number, as measured on two; "
            "GEMMs, convolutions and attention do not change, because their libraries choose the grids."
        ),
        "Half of the cost of a nearly empty wave is recovered (an estimate). In the worst case nothing changes.",
        "Kernels with unknown FLOPs and bytes do not change.",
    ),
    effort="rewrite",
    apply=apply,
    findings=(
        Rule(
            name="small_grid",
            cause="kernel",
            summary="long kernels that leave most of the GPU idle",
            look=small_grid,
            advice=Advice(
                pytorch=(
                    "Give the kernel more parallelism: a larger batch, the reduced dimension split in two "
                    "passes (x.view(n, parts, -1).sum(-1).sum(-1)), or in a Triton kernel a smaller BLOCK and a "
                    "grid of at least torch.cuda.get_device_properties(0).multi_processor_count."
                ),
                cuda=(
                    "Launch at least as many blocks as the device has multiprocessors "
                    "(cudaDevAttrMultiProcessorCount): smaller blocks, a grid-stride loop, or a reduction in two "
                    "passes."
                ),
                neutral="Give the kernel more parallelism: a larger batch, or a reduction in two passes.",
            ),
            most="low",
        ),
    ),
    needs=("grids and blocks of kernels", "the device's multiprocessors", "the shapes of ops (record_shapes=True)"),
    after=("streams",),
    same_work=True,
    not_tried="it is a limit, not a change",
)
