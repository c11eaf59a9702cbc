"""Replaces unfused attention by one fused kernel."""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct

from warpline.capture.trial.use import ProgramUse
from warpline.fixes.claim import Claim
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Advice, Fix, Rule
from warpline.fixes.step_contents import StepContents
from warpline.fixes.tryable import TryableChange
from warpline.replay.costs import shares
from warpline.replay.graph_edit import NOTHING, GraphEdit
from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.patterns.casts import casts
from warpline.replay.patterns.precision import HALF_TYPES
from warpline.replay.whatif import Prediction
from warpline.trace.arrays import NONE, Bools, Floats, Int64s
from warpline.units import duration, several
from warpline.work.parse import recorded_sizes

REACH = 12
"""How many kernels before and after a softmax may belong to the same attention: scale, mask, casts, dropout."""
BATCHED = {"aten::bmm", "aten::baddbmm", "aten::matmul", "aten::einsum", "aten::_bmm"}
FUSED_AXES = 4
"""Dimensions of the tensors that fused kernels take."""
MATH = "aten::_scaled_dot_product_attention_math"


class Attentions(Struct, frozen=True):
    """All unfused attentions, as nodes of the graph, one after the other."""

    members: Int64s
    begins: Int64s
    """Where among the members each one begins."""
    multiplying: Int64s
    """Their GEMMs."""
    first_products: Int64s
    """Where among these the products of each begin."""
    averages: Int64s
    """Means of their weights, which a fused kernel does not have."""
    casts: list[Int64s]
    """Casts beside each one."""
    least_ns: Floats
    """What the GEMMs of each one take at least in half precision."""
    is_half: Bools
    """Whether any of it runs in half precision."""
    is_biased: Bools
    is_masked: Bools


def apply(edit: GraphEdit, case: int) -> int:
    """Replace each unfused attention by one kernel."""
    labelled = edit.labelled
    changed, raised = _fuse_raised(edit, case)
    found = _found_attentions(labelled, labelled.in_steps & ~edit.gone)
    if found is None:
        return changed
    duration, begins, removed = edit.graph.duration, found.begins, [found.averages]
    whole = np.add.reduceat(duration[found.members], begins)
    products = np.add.reduceat(duration[found.multiplying], found.first_products)
    share = np.where(found.is_biased, shares.SDPA_BIASED.at(case), shares.SDPA_HALF.at(case))
    single = shares.SDPA_SINGLE.at(case) * np.where(found.is_masked, shares.CAUSAL.at(case), 1.0)
    new = np.maximum(np.where(found.is_half, share * products, single * whole), found.least_ns)
    if raised.any():
        in_half = np.add.reduceat(_in_half(edit, found.multiplying), found.first_products)
        is_raised = np.logical_or.reduceat(raised[found.members], begins)
        new = np.where(is_raised, shares.SDPA_HALF.at(case) * in_half, new)
        removed += [found.casts[which] for which in np.flatnonzero(is_raised).tolist()]
    duration[found.members[begins]] = np.minimum(whole, new)
    edit.remove_work(np.concatenate([*removed, np.delete(found.members, begins)]))
    return changed + len(found.members)


def _found_attentions(labelled: LabelledGraph, usable: Bools) -> Attentions | None:
    products, softmax = labelled.kernels("gemm"), labelled.kernels("softmax")
    half = labelled.kernels_where(lambda identity: identity.dtype.a in HALF_TYPES)
    floor, masked = labelled.floor_ns() / 2, labelled.under_op("aten::masked_fill", "aten::masked_fill_")
    biased = labelled.under_op("aten::add", "aten::add_", "aten::baddbmm")
    chooses = labelled.kernels("sort_scan")
    matrix, found, averages, beside = products & labelled.once(_batched), list[Int64s](), [NOTHING], list[Int64s]()
    for lane in np.unique(labelled.graph.lane[softmax & usable]).tolist():
        nodes = labelled.work_of_lane[lane]
        nodes = nodes[usable[nodes]]
        for attention in _attentions(nodes, matrix, softmax, labelled.once(_backward)):
            if chooses[attention].any():  # the largest weights choose the experts of a mixture: a router
                continue
            found.append(attention)
            averages.append(_averages(labelled, nodes, attention[softmax[attention]]))
            beside.append(_casts_beside(labelled, nodes, attention))
    if not found:
        return None
    members = np.concatenate(found)
    begins = np.cumsum([0, *map(len, found[:-1])])
    is_product = products[members]
    first_products: Int64s = (np.cumsum(is_product) - is_product)[begins]
    multiplying = members[is_product]
    half, biased, masked = (np.logical_or.reduceat(some[members], begins) for some in (half, biased, masked))
    least_ns = np.add.reduceat(floor[multiplying], first_products)
    return Attentions(
        members, begins, multiplying, first_products, np.concatenate(averages), beside, least_ns, half, biased, masked
    )


def _fuse_raised(edit: GraphEdit, case: int) -> tuple[int, Bools]:
    """Attentions that the math backend runs in single precision become one kernel in half; also, which softmax
    kernels of backward passes have the size of one of theirs."""
    labelled, changed = edit.labelled, 0
    usable, sizes = labelled.in_steps & ~edit.gone, set[int]()
    around = _math_op_around(labelled)
    products, biased = labelled.kernels("gemm"), labelled.under_op("aten::add", "aten::add_", "aten::baddbmm")
    lowered = labelled.once(casts) & labelled.once(_with_half_types)
    for op in np.unique(around[lowered & usable & (around != NONE)]).tolist():
        members = np.flatnonzero((around == op) & usable)
        multiplying = members[products[members]]
        if not len(multiplying):
            continue
        share = (shares.SDPA_BIASED if biased[members].any() else shares.SDPA_HALF).at(case)
        new = share * float(_in_half(edit, multiplying).sum())
        sizes |= {_elements(labelled, node) for node in members[labelled.kernels("softmax")[members]].tolist()}
        others = np.setdiff1d(members, multiplying[:1])
        edit.remove_work_only(others)
        edit.remove_calls(np.setdiff1d(labelled.call_of_work[others], NONE))
        edit.graph.duration[multiplying[0]] = min(new, float(labelled.graph.duration[members].sum()))
        changed += len(members)
    raised = np.zeros(len(labelled.graph), bool)
    if not sizes:
        return changed, raised
    backward = np.flatnonzero(labelled.kernels("softmax") & labelled.once(_backward) & usable)
    raised[[node for node in backward.tolist() if _elements(labelled, node) in sizes]] = True
    return changed, raised


def _in_half(edit: GraphEdit, products: Int64s) -> Floats:
    """Duration of these single-precision GEMMs in half precision, never below their floors."""
    labelled, now = edit.labelled, edit.labelled.graph.duration[products]
    cores = labelled.kernels_where(lambda identity: identity.tensor_core is False)[products]
    slow, fast = (edit.labelled.device.converted_ns(now, dtype, "bf16") for dtype in ("fp32", "tf32"))
    return np.maximum(np.where(cores, slow, fast), labelled.floor_ns("bf16")[products])


def _casts_beside(labelled: LabelledGraph, nodes: Int64s, members: Int64s) -> Int64s:
    """Casts shortly before and after an attention."""
    first, last = np.searchsorted(nodes, members[[0, -1]])
    near = np.append(nodes[max(first - REACH, 0) : first], nodes[last + 1 : last + 1 + REACH])
    return near[labelled.once(casts)[near]]


def _with_half_types(labelled: LabelledGraph) -> Bools:
    """GPU operations of ops that take a tensor in half precision."""
    return labelled.op_dtypes.where(lambda types: "c10::BFloat16" in types or "c10::Half" in types)


def _math_op_around(labelled: LabelledGraph) -> Int64s:
    """The row of the op `MATH` around each GPU operation; NONE if there is none."""
    named = np.append(labelled.trace.ops.name.equal(MATH), False)
    parents = np.append(labelled.trace.ops.parent, NONE)
    found, around = np.full(len(labelled.graph), NONE, np.int64), labelled.op
    while named.any() and (around != NONE).any():
        found = np.where(named[around] & (found == NONE), around, found)
        around = parents[around]
    return found


def _batched(labelled: LabelledGraph) -> Bools:
    """GPU operations of batched GEMM ops; all operations if the profile has no ops."""
    if not len(labelled.trace.ops):
        return np.ones(len(labelled.graph), bool)
    return labelled.op_name.equal(*BATCHED)


def _backward(labelled: LabelledGraph) -> Bools:
    """Kernels whose name shows that they belong to a backward pass."""
    return labelled.kernels_where(lambda identity: "backward" in identity.name.lower())


def _attentions(nodes: Int64s, matrix: Bools, softmax: Bools, backward: Bools) -> list[Int64s]:
    """From the batched GEMM before each softmax to the one after it; in a backward pass, two on each side."""
    spots = np.flatnonzero(matrix[nodes])
    found, taken = [], -1
    for spot in np.flatnonzero(softmax[nodes]).tolist():
        here = int(np.searchsorted(spots, spot))
        most = 2 if backward[nodes[spot]] else 1
        before, after = spots[max(here - most, 0) : here], spots[here : here + most]
        before, after = before[before > max(taken, spot - REACH - 1)], after[after <= spot + REACH]
        if not len(before) or not len(after):
            continue
        found.append(nodes[before[0] : after[-1] + 1])
        taken = int(after[-1])
    return found


def _averages(labelled: LabelledGraph, nodes: Int64s, softmax: Int64s) -> Int64s:
    """Means of the weights over the heads, soon after an attention: a fused attention has no weights to average."""
    after = nodes[np.searchsorted(nodes, softmax[-1], side="right") :][: 2 * REACH]
    means = after[labelled.once(_means)[after]]
    size = _elements(labelled, softmax[-1]) if len(means) else 0
    return means[[size > 0 and _elements(labelled, node) == size for node in means]]


def _means(labelled: LabelledGraph) -> Bools:
    """GPU operations of means."""
    return labelled.op_name.equal("aten::mean")


def _elements(labelled: LabelledGraph, node: int) -> int:
    """Elements of the first tensor of a kernel's op; 0 if no shapes are recorded."""
    sizes = recorded_sizes(labelled.op_shapes.text(node) or "")
    return math.prod(sizes[0]) if sizes and sizes[0] else 0


def unfused_attention(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Attention as separate GEMMs and softmax."""
    members = evidence.changed(FIX.name).work
    softmax = members & evidence.labelled.kernels("softmax")
    if not evidence.per_step(softmax):
        return None
    kernels = evidence.per_step(members) / evidence.per_step(softmax)
    return Claim(
        f"Attention is unfused {several(evidence.per_step(softmax), 'time')} {evidence.noun.per} (about "
        f"{several(kernels, 'kernel')} each, {duration(evidence.time_per_step(members))} in total), and its scores "
        "go through memory.",
        evidence.places(softmax),
        how=_how_to_leave_math(evidence.labelled, softmax),
    )


def _how_to_leave_math(labelled: LabelledGraph, softmax: Bools) -> str | None:
    """Advice for attention that is written with scaled_dot_product_attention already, and runs unfused."""
    calls = np.unique(_math_op_around(labelled)[softmax])
    if not len(calls) or calls[0] == NONE:
        return None
    sizes = recorded_sizes(labelled.trace.ops.shapes.text(int(calls[0])) or "")
    axes = len(sizes[0]) if sizes and sizes[0] else FUSED_AXES
    first = f"; here they have {axes}: add the missing ones with unsqueeze" if axes < FUSED_AXES else ""
    return (
        "scaled_dot_product_attention is called, and runs its math backend. Its fused kernels take tensors of four "
        f"dimensions (batch, heads, length, size){first}; in fp16 or bf16 for the fastest, with a size that is a "
        "multiple of 8 and at most 256. Call it within torch.nn.attention.sdpa_kernel([SDPBackend.FLASH_ATTENTION, "
        "SDPBackend.EFFICIENT_ATTENTION]): then torch warns what is missing."
    )


def was_made(before: StepContents, after: StepContents) -> bool:
    """Attention kernels appear, and softmax kernels go."""
    is_new = before.count("attention") == 0 < after.count("attention")
    return is_new and after.count("softmax") < before.count("softmax")


def why_not_tried(use: ProgramUse) -> str | None:
    """Where it would change nothing."""
    kinds = [module.attention for module in use.modules if module.attention]
    if not kinds:
        return "no model has a config that chooses its attention"
    return None if "eager" in kinds else f"attention is {kinds[0]} already"


FIX = Fix(
    name="sdpa",
    words="fused attention (sdpa)",
    summary=("Unfused attention becomes one fused kernel (scaled_dot_product_attention)."),
    assumptions=(
        (
            "An attention is a softmax between two batched GEMMs, and in the backward pass between two pairs of them; "
            "kernels between them belong to it, and so do means of its weights over the heads. With a sort or a top-k "
            "among them it is the router of a mixture of experts, and none."
        ),
        (
            "If scaled_dot_product_attention runs unfused (its math backend) and converts half precision to single, "
            "all of that is fused, in the precision of its inputs."
        ),
        (
            "In half precision the fused kernel takes half as long as the GEMMs alone, and with a bias as long as "
            "they do. In single precision it gains what was measured on an H200 at 512 to 4,096 tokens; a mask that "
            "fills (masked_fill) is taken for a causal one and halves the time again, except in the worst case."
        ),
    ),
    effort="few_lines",
    apply=apply,
    findings=(
        Rule(
            name="unfused_attention",
            cause="kernel",
            summary="unfused attention, with its scores in memory",
            look=unfused_attention,
            advice=Advice(
                pytorch=(
                    "torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask) in place of the "
                    "matmuls and the softmax, is_causal=True for a causal mask; in transformers, "
                    "attn_implementation='sdpa'"
                ),
                cuda=(
                    "Use fused attention: cuDNN's scaled dot product attention graph, FlashAttention or CUTLASS's "
                    "example, so that the scores stay on the chip."
                ),
                other=(
                    "Use the framework's fused attention: jax.nn.dot_product_attention(q, k, v, "
                    "implementation='cudnn'), or xformers."
                ),
            ),
        ),
    ),
    needs=("kernel names", "ops, and their shapes for masks and means"),
    after=("bf16", "fp16", "tf32"),
    was_made=was_made,
    replaces_kernels=True,
    implies=("batch", "drop_copies", "preallocate", "pad", "tf32", "bf16", "fp16"),
    tried=(
        TryableChange(
            "sdpa",
            "attention by scaled_dot_product_attention where the model's config says eager",
            "from_pretrained(…, attn_implementation='sdpa')",
            why_not_tried,
        ),
    ),
)
