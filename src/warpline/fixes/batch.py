"""Batches the same small kernels that a loop launches for each sample (or head)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from warpline.fixes.claim import Claim
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Advice, Fix, Rule
from warpline.fixes.step_contents import MAX_LEFT, MIN_PER_STEP, StepContents
from warpline.kernels import identify
from warpline.replay.costs import shares
from warpline.replay.graph.model import EdgeKind
from warpline.replay.graph_edit import NOTHING, GraphEdit
from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.patterns.grids import LIBRARY_CLASSES, Grids
from warpline.replay.patterns.independent_loops import KernelLoop
from warpline.replay.patterns.loops import MIN_REPEATS, RootOps, begun_before, loops
from warpline.replay.patterns.optimizers import in_optimizer
from warpline.replay.patterns.tensor_lists import lists_of_tensors
from warpline.replay.whatif import Prediction
from warpline.trace.arrays import NONE, Floats, Int64s, Texts, combinations, grouped
from warpline.units import count, several

SMALL_KERNEL_IN_OPS = 2.0
"""A kernel that takes longer than so many ops of the host hides their dispatch: a batch of it takes the sum."""


def apply(edit: GraphEdit, case: int) -> int:
    """Keep the first of each run of equal groups, with the time of the batch."""
    labelled, graph = edit.labelled, edit.graph
    changed, removed = 0, [NOTHING]
    batched = _Batched(labelled)
    for loop in _loops(edit):
        iterations = loop.iterations
        edit.remove_work(loop.first)
        graph.duration[iterations[0]] = batched.duration_ns(loop, graph.duration, case)
        sums = loop.sums_of_gradients
        removed += [iterations[1:].reshape(-1), iterations[0, sums]]
        edit.remove_ops(loop.cutting)
        longer = 1 - int(sums.sum()) / iterations.shape[1]
        _keep_one_iteration(edit, iterations, loop.gathered_ns, longer)
        call = int(labelled.call_of_work[iterations[0, -1]])
        if loop.is_over_a_list and call != NONE:
            graph.duration[call] += iterations.size * labelled.host.list_tensor.at(case)
        edit.remove_work(loop.gathering)
        changed += iterations[1:].size
    edit.remove_work_only(np.concatenate(removed))
    return changed


def _loops(edit: GraphEdit) -> Iterator[KernelLoop]:
    """Loops over small kernels whose iterations do not depend on each other."""
    labelled, graph = edit.labelled, edit.graph
    names, labels = labelled.once(_labels)
    usable = labelled.in_steps & ~edit.gone & labelled.is_work
    forwards: list[KernelLoop] = []
    optimizer, op_ns = labelled.once(in_optimizer), labelled.host.launched_op.expected
    for _, nodes in grouped(np.flatnonzero(usable), graph.lane[usable]):
        if len(nodes) < MIN_REPEATS:
            continue
        for iterations in loops(nodes, labels[nodes], labelled.step):
            small = np.median(graph.duration[iterations], axis=0).max() <= SMALL_KERNEL_IN_OPS * op_ns
            if small and labelled.is_kernel[iterations[0]].any() and not _waits(edit, iterations):
                loop = KernelLoop(
                    labelled,
                    labelled.once(RootOps),
                    nodes,
                    iterations,
                    begun_before(nodes, labelled.once(_spelled), iterations, labelled.step),
                )
                if _is_independent(labelled, loop) or any(forward.leads_to(loop) for forward in forwards):
                    forwards.append(loop)
                    usable[iterations] = False
                    yield loop
        left = nodes[usable[nodes] & ~optimizer[nodes]]
        for iterations in lists_of_tensors(labelled, left, names[left]):
            yield KernelLoop(labelled, labelled.once(RootOps), left, iterations, NOTHING, is_over_a_list=True)


def _labels(labelled: LabelledGraph) -> tuple[Int64s, Int64s]:
    """A number for the kind and the name of each GPU operation, and one that tells its shapes apart too."""
    kernel = np.where(labelled.op == NONE, labelled.name.codes, NONE)  # an op's kernels have the name of the op
    _, names = combinations(labelled.kind.codes, kernel, labelled.op_name.codes)
    _, with_shapes = combinations(names, labelled.op_shapes.codes)
    return names, with_shapes


def _spelled(labelled: LabelledGraph) -> Texts:
    """The kind and the name of each GPU operation."""
    return labelled.kind.texts + "|" + np.where(labelled.op == NONE, labelled.name.texts, labelled.op_name.texts)


def _is_independent(labelled: LabelledGraph, loop: KernelLoop) -> bool:
    """By the recorded data flow; without it, by the shapes of what an iteration takes and makes."""
    guessed = loop.is_independent
    known = labelled.dataflow.are_independent(loop.iterations) if labelled.dataflow is not None else None
    return guessed if known is None else known


class _Batched:
    """Duration of kernels that do all iterations at once."""

    def __init__(self, labelled: LabelledGraph) -> None:
        self._labelled, self._floor = labelled, labelled.floor_ns()
        # A library's batched GEMM has another grid than the GEMM of one iteration.
        self._full = np.where(labelled.kernels(*LIBRARY_CLASSES), 0.0, np.minimum(labelled.once(Grids).waves, 1.0))
        self._full[labelled.is_copy] = 1.0

    def duration_ns(self, loop: KernelLoop, duration: Floats, case: int) -> Floats:
        """For each kernel of an iteration, the duration of one kernel for all iterations."""
        iterations = loop.iterations
        whole, typical = duration[iterations].sum(0), np.median(duration[iterations], axis=0)
        crowded = (duration[iterations] * self._full[iterations]).sum(0)
        shared = np.array([loop.shared(node) for node in iterations[0].tolist()])
        floor = self._floor[iterations]
        least = np.minimum((1 - shared) * floor.sum(0) + shared * floor.max(0), whole)
        rows = np.array([loop.rows(root) for root in self._labelled.root_op[iterations[0]].tolist()])
        looked_up = self._labelled.device.block.at(case) * len(iterations) * rows
        longest = np.maximum.reduce([shares.BATCHED.at(case) * typical, crowded, least, looked_up])
        return np.minimum(longest, np.maximum(whole, looked_up))


def _keep_one_iteration(edit: GraphEdit, iterations: Int64s, gathered_ns: int | None, longer: float) -> None:
    """The first iteration keeps its CPU time, or a typical iteration's if that is less: the first is often cold.

    The batch takes `longer` times that. The rest is removed, to the end of the last iteration or of the op that gathers
    the results.
    """
    labelled, graph = edit.labelled, edit.graph
    calls = labelled.call_of_work[iterations[:, -1]]
    if NONE in calls:
        return
    lane = int(graph.lane[calls[0]])
    nodes = np.flatnonzero(~labelled.is_work & (graph.lane == lane))
    ends = np.searchsorted(nodes, calls) + 1
    spent = np.append(0.0, graph.duration[nodes].cumsum())
    typical = float(np.median(np.diff(spent[ends])))
    # The segment before the loop's first call also holds what precedes the loop, so it does not change.
    first = nodes[max(ends[0] - int(np.median(np.diff(ends))) + 1, 0) : ends[0]]
    graph.duration[first] *= longer * min(1.0, typical / max(float(graph.duration[first].sum()), 1.0))
    edit.remove_cpu(lane, int(graph.measured_end[calls[0]]), gathered_ns or int(graph.measured_end[calls[-1]]))


def _waits(edit: GraphEdit, iterations: Int64s) -> bool:
    """Whether the CPU waits for the device inside the loop, so that an iteration may depend on the previous one."""
    moments = edit.labelled.launch_moment[iterations]
    waiting = edit.graph.edge_to[edit.graph.edge_kind == EdgeKind.SYNC]
    when = edit.graph.measured_start[waiting]
    return bool(((when > moments[0, 0]) & (when < moments[-1, -1])).any())


def many_small_gemms(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """A loop that could be one batch."""
    change = evidence.changed(FIX.name)
    looped = change.work
    products = evidence.per_step(looped & evidence.labelled.kernels("gemm"))
    among = f", {count(products)} of them GEMMs" if products else ""
    return Claim(
        "A loop launches the same few kernels for each sample (head, tensor): "
        f"{several(evidence.per_step(looped), 'small kernel')} {evidence.noun.per}{among}, where a batch needs "
        f"{several(max(round(evidence.per_step(looped & ~change.gone)), 1), 'kernel')}.",
        evidence.places(looped),
    )


def was_made(before: StepContents, after: StepContents) -> bool:
    """A few large kernels do what many small ones of the same classes did, and the CPU waits as often."""
    if after.total > MAX_LEFT * before.total or before.calls["launches"] < 1:
        return False
    if after.count("optimizer", "attention") or after.fused or set(before.matrix_types) != set(after.matrix_types):
        return False
    old, new = ({identify(name).kernel_class for name in one.kernels} for one in (before, after))
    host = ("waits", "allocations", "frees")
    same_calls = all(abs(before.calls[kind] - after.calls[kind]) < MIN_PER_STEP for kind in host)
    return same_calls and bool(old & new - {"unknown", "other"})


FIX = Fix(
    name="batch",
    words="one batch instead of the loop",
    summary=("A group of small kernels that a loop launches for each sample is launched once for the whole batch."),
    assumptions=(
        (
            "Iterations are independent if each takes a slice of a tensor or their results are concatenated, and no "
            "other input has the shape and type of an output, as a recurrent state has; also if their results are "
            "only summed. Their backward passes are then independent too, and so are updates and norms of tensors of "
            "different shapes. Where `warpline run` recorded the data flow, it decides."
        ),
        (
            "On the device the batch takes slightly longer than one iteration, never less than the roofline, and as "
            "long as all iterations if each fills the device; each row of a lookup takes one block."
        ),
        (
            "The CPU takes as long for the batch as for a typical iteration, plus a little per tensor of a list; "
            "slicing and gathering disappear."
        ),
    ),
    effort="few_lines",
    apply=apply,
    findings=(
        Rule(
            name="many_small_gemms",
            cause="dispatch",
            summary="a loop that could be one batch",
            look=many_small_gemms,
            advice=Advice(
                pytorch=(
                    "Process the batch at once instead of looping over samples: torch.bmm(torch.stack(xs), w), one "
                    "call with a larger batch, or torch.func.vmap(f)(xs); over parameters or gradients, "
                    "torch._foreach_mul_(tensors, factor) and similar functions take the whole list."
                ),
                cuda=(
                    "One launch over the whole batch: cublasGemmStridedBatchedEx or cublasGemmGroupedBatchedEx, and "
                    "a grid dimension for the sample."
                ),
                other="Process the batch at once (vmap).",
                neutral="Process the batch in one launch, with a grid dimension for the sample.",
            ),
            most="medium",
        ),
    ),
    needs=("ops, and their shapes",),
    shows_in_ops=True,
    after=("no_empty_cache", "preallocate"),
    was_made=was_made,
    replaces_kernels=True,
    not_tried="the loop stands in the source",
)
