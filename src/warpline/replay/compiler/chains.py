"""Which kernels a compiler fuses, and what takes their place."""

from __future__ import annotations

import re

import numpy as np

from warpline.hardware.chips import VECTOR
from warpline.replay.compiler.units import Fused
from warpline.replay.costs import shares
from warpline.replay.costs.cost import OPTIMISTIC
from warpline.replay.graph_edit import NOTHING, GraphEdit
from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.patterns.casts import plain_copies
from warpline.trace.arrays import NONE, Bools, Floats, Int64s

FUSIBLE = ("elementwise", "norm", "softmax", "reduction", "layout", "rng", "index", "quant", "memory")
"""Kernels that a compiler generates itself and fuses with their neighbours."""
LIBRARY = re.compile(
    r"aten::(addmm|bmm|baddbmm|\w*_?mm|_addmm_activation|\w*convolution\w*|\w*conv_depthwise\w*|_?slow_conv\w*"
    r"|_scaled_dot_product_(flash|efficient|cudnn|fused)\w*|_(flash|efficient|cudnn)_attention\w*|_cudnn_rnn\w*|_fft_\w+"
    r"|_?linalg_(?!vector_norm|norm|matrix_norm|cross|vecdot)\w+|\w*cholesky\w*|triangular_solve|lu_\w+"
    r"|sort|topk|kthvalue|median|multinomial|nonzero|masked_select|_?unique\w*|histc|bincount|_cdist\w*|_embedding_bag\w*"
    r"|_ctc_loss\w*)"
    r"|(?!aten|prims?|autograd|torch|inductor)[a-z]\w*::.*"
)
"""Ops that a compiler leaves to libraries, including all kernels they launch. It cannot fuse into ops that
torch does not define."""
LARGE_SHARE = 0.4
"""A kernel that moves at least this share of the bytes of the largest kernel of its chain touches the whole tensor."""
ADDING = (
    "aten::index_add_",
    "aten::index_add",
    "aten::scatter_add_",
    "aten::scatter_add",
    "aten::scatter_reduce_",
    "aten::scatter_reduce",
    "aten::index_put_",
    "aten::_index_put_impl_",
    "aten::index_reduce_",
    "aten::embedding_dense_backward",
)
"""Ops that add many values into one address: the contention stays, whichever kernel they are fused into."""

BATCH_NORM = re.compile(r"aten::\w*batch_norm\w*")
"""Ops that need the statistics of the whole batch (in evaluation they are cheap, and rarely a kernel of their own)."""


def fusible_kernels(labelled: LabelledGraph) -> Bools:
    """Kernels within steps that a compiler generates itself."""
    library = labelled.under_op_where(lambda name: LIBRARY.fullmatch(name) is not None)
    copies = labelled.copy_kind.equal("DtoD") & (labelled.op != NONE)
    return (labelled.kernels(*FUSIBLE) | copies) & ~library & labelled.in_steps


def fusible_chains(labelled: LabelledGraph, fusible: Bools) -> tuple[Int64s, Bools]:
    """Runs of consecutive fusible kernels on one stream within a step, and where each run begins.

    A run comes from one thread: autograd launches the backward pass from its own thread, and it is compiled separately.
    """
    found, begins = [NOTHING], [np.empty(0, bool)]
    plain = labelled.once(plain_copies)
    for lane in np.unique(labelled.graph.lane[fusible]).tolist():
        nodes = labelled.work_of_lane[lane]
        own, step, thread = fusible[nodes], labelled.step[nodes], _launching_thread(labelled, nodes)
        # A compiler does not fuse copies with each other: each still has to write what it copies.
        copies = plain[nodes] & np.append(False, plain[nodes][:-1])
        ends = ~own | copies | (np.diff(step, prepend=step[:1]) != 0) | (np.diff(thread, prepend=thread[:1]) != 0)
        group = np.cumsum(ends)[own]
        chained, begin = _along_tensors(labelled, nodes[own], np.diff(group, prepend=group[0] - 1) != 0)
        found.append(chained)
        begins.append(begin)
    return np.concatenate(found), np.concatenate(begins)


def _along_tensors(labelled: LabelledGraph, nodes: Int64s, begins: Bools) -> tuple[Int64s, Bools]:
    """Chains split into parts that share no tensor, where the data flow is known: a compiler fuses what reads or writes
    the same memory, however the parts alternate."""
    if labelled.dataflow is None or not len(nodes):
        return nodes, begins
    order, part, chain = np.arange(len(nodes)), np.zeros(len(nodes), np.int64), np.cumsum(begins)
    for first, beyond in zip(np.flatnonzero(begins), np.append(np.flatnonzero(begins)[1:], len(nodes)), strict=True):
        number = labelled.dataflow.together(nodes[first:beyond])
        if number is None:
            continue
        by_part = np.argsort(number, kind="stable")
        order[first:beyond], part[first:beyond] = first + by_part, number[by_part]
    return nodes[order], (np.diff(chain, prepend=0) != 0) | (np.diff(part, prepend=NONE) != 0)


def fuse(edit: GraphEdit, kernels: Fused, extra: Floats, case: int) -> Int64s:
    """Leaves one kernel of each fused group and returns the removed ones; adds host time for what the fusion costs."""
    region = 0.0 if case == OPTIMISTIC else edit.labelled.host.region.at(case)
    nodes, starts, lengths = kernels.nodes, kernels.starts, edit.graph.duration[kernels.nodes]
    counts = np.diff(starts, append=len(nodes))
    most = np.repeat(np.maximum.reduceat(lengths, starts), counts)
    stays = np.minimum.reduceat(np.where(lengths == most, np.arange(len(nodes)), len(nodes)), starts)
    extra[nodes[stays]] += (
        kernels.cut_up * edit.labelled.host.compiled_launch.at(case) + kernels.begins_iteration * region
    )
    by_times = _time_by_times(lengths, edit.labelled.floor_ns()[nodes], starts, stays, case)
    by_shapes = _time_by_shapes(kernels, edit.labelled, case)
    new = by_times if by_shapes is None else np.where(kernels.known, by_shapes, by_times)
    adding = np.maximum.reduceat(np.where(edit.labelled.under_op(*ADDING)[nodes], lengths, 0.0), starts)
    several = counts > 1
    left = np.maximum(np.maximum(new, adding), _of_batch_norms(edit.labelled, nodes, lengths, starts, case))
    shorter = np.minimum(np.add.reduceat(lengths, starts), left)
    edit.graph.duration[nodes[stays[several]]] = shorter[several]
    return np.delete(nodes, stays)


def _of_batch_norms(labelled: LabelledGraph, nodes: Int64s, lengths: Floats, starts: Int64s, case: int) -> Floats:
    """Time that remains of the batch norms in each fused kernel."""
    own = np.where(labelled.once(_batch_norms)[nodes], lengths, 0.0)
    return shares.BATCH_NORM_COMPILED.at(case) * np.add.reduceat(own, starts)


def _batch_norms(labelled: LabelledGraph) -> Bools:
    return labelled.under_op_where(lambda name: BATCH_NORM.fullmatch(name) is not None)


def _launching_thread(labelled: LabelledGraph, nodes: Int64s) -> Int64s:
    """The thread that launched each GPU activity; if unknown, the thread of the previous activity."""
    calls = labelled.call_of_work[nodes]
    latest = np.maximum.accumulate(np.where(calls != NONE, np.arange(len(nodes)), 0))
    return labelled.graph.lane[calls[latest]]


def _time_by_shapes(kernels: Fused, labelled: LabelledGraph, case: int) -> Floats | None:
    """The time of each fused kernel: for its bytes or for its operations, whichever is longer."""
    floors = labelled.floors
    memory = floors.memory_bytes_per_ns
    vector = floors.roof.compute("fp32", VECTOR) if floors.roof else None
    if memory is None or vector is None:
        return None
    byte_ns = shares.FUSED_BYTES.at(case) / memory
    step_ns = shares.FUSED_STEP_FLOPS.at(case) / vector.value * 1e9
    moved, done, present = np.moveaxis(kernels.parts, -1, 0)
    least = labelled.device.smallest_kernel.at(case) * present
    return (least + np.maximum(moved * byte_ns, done * step_ns)).sum(axis=1)


def _time_by_times(lengths: Floats, floor: Floats, starts: Int64s, longest: Int64s, case: int) -> Floats:
    """If shapes were not recorded: the time of one pass over the tensors, estimated from the recorded passes."""
    counts = np.diff(starts, append=len(lengths))
    # Bytes are preferred if known: a slow kernel may touch no more data than a fast one.
    size = np.where(np.repeat(floor[longest] > 0, counts), floor, lengths)
    large = size >= LARGE_SHARE * np.repeat(np.maximum.reduceat(size, starts), counts)
    least = np.minimum.reduceat(np.where(large, lengths, np.inf), starts)
    return least + shares.FUSED_CHAIN.at(case) * (lengths[longest] - least)
