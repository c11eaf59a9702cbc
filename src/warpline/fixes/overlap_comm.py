"""Overlaps collectives with computation."""

from __future__ import annotations

import numpy as np

from warpline.analyses.collective_waits import least_waits_ns
from warpline.estimate import NOTICEABLE_GAIN
from warpline.fixes.claim import Claim
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Advice, Fix, Rule
from warpline.intervals import difference, union
from warpline.replay.costs import shares
from warpline.replay.costs.cost import OPTIMISTIC, PESSIMISTIC
from warpline.replay.graph_edit import GraphEdit
from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.patterns.larger_batches import updating
from warpline.replay.whatif import Prediction
from warpline.trace.arrays import Bools, Int64s
from warpline.units import count, duration

FORWARD_ONLY = (
    "There is no backward pass to overlap them with. Issue collectives asynchronously (async_op=True), and wait for "
    "them where the result is needed; with tensor parallelism, split the batch or the sequence so that one part "
    "computes while the other communicates, or use fewer ranks per model."
)
BACKWARD_KERNEL = r"(?i)backward|bwd|[dw]grad"
LEAST_SHARE = 0.1
"""Exposed communication of this share of a step is reported even where the CPU is the slower."""
ENDS_WITH = 0.1
"""A gap of the CPU that ends so soon after a collective, as a share of the gap, was a wait for it."""


def apply(edit: GraphEdit, case: int) -> int:
    """Detach collectives from the operations after them."""
    labelled = edit.labelled
    moving = labelled.kernels("comm")
    comm = np.flatnonzero(moving & labelled.in_steps & ~edit.gone & ~labelled.once(mostly_waits))
    if not len(comm):
        return 0
    edit.detach(comm)
    _let_cpu_go_on(edit, comm, case)
    others = np.flatnonzero(labelled.is_kernel & labelled.in_steps & ~edit.gone & ~moving)
    slower = shares.COMM_SLOWDOWN.at(case) - 1
    share = float(edit.graph.duration[comm].sum()) / max(1.0, float(edit.graph.duration[others].sum()))
    edit.graph.duration[others] *= 1 + slower * min(1.0, share)
    return len(comm)


def mostly_waits(labelled: LabelledGraph) -> Bools:
    """Collectives that wait for other ranks for most of their time: beside other kernels they wait as long."""
    waits = np.zeros(len(labelled.graph), bool)
    rows = labelled.graph.row[labelled.work]
    gpu = labelled.trace.gpu
    waits[labelled.work] = (2 * least_waits_ns(labelled.trace) > gpu.end_ns - gpu.start_ns)[rows]
    return waits


def _let_cpu_go_on(edit: GraphEdit, comm: Int64s, case: int) -> None:
    """Shorten long gaps of the CPU in which it waits for an exposed collective: those that end with one; in the best
    case all of them, in the worst none."""
    if case == PESSIMISTIC:
        return
    labelled, graph = edit.labelled, edit.graph
    others = labelled.is_kernel & ~graph.marked(comm)
    begun, done = graph.measured_start, graph.measured_end
    exposed = difference(union(begun[comm], done[comm]), union(begun[others], done[others]))
    share = labelled.covered(exposed.starts, exposed.ends) * (1 - labelled.op_share)
    waits = labelled.in_steps & (share > 0) & (graph.duration > labelled.host.longest_dispatch.expected)
    if case != OPTIMISTIC:
        ends = np.sort(done[comm])
        last = ends[np.maximum(np.searchsorted(ends, done, side="right") - 1, 0)]
        waits &= (last > begun) & (done - last <= ENDS_WITH * (done - begun))
    nodes = np.flatnonzero(waits)
    graph.duration[nodes] *= 1 - share[nodes]


def exposed_collective(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Communication that no computation overlaps."""
    moved = evidence.changed(FIX.name).moved
    exposed = evidence.exposed_per_step(moved)
    devices = max(1, len(np.unique(evidence.labelled.work_number("device")[evidence.in_steps(moved)])))
    is_small = exposed / devices < LEAST_SHARE * evidence.step_ns
    if not exposed or (prediction.gain.expected < NOTICEABLE_GAIN and is_small):
        return None
    where = f", on {devices} devices together" if devices > 1 else ""
    return Claim(
        f"Collectives do not overlap with computation: {count(evidence.per_step(moved))} {evidence.noun.per}, "
        f"{duration(evidence.time_per_step(moved))}, of which {duration(exposed)} with no other kernel running on "
        f"their device{where}.",
        evidence.places(moved),
        FORWARD_ONLY if evidence.framework == "pytorch" and not _has_backward(evidence.labelled) else None,
    )


def _has_backward(labelled: LabelledGraph) -> bool:
    """Whether a backward pass is recorded, by its ops or its kernels, or by an update of parameters that follows it."""
    if labelled.of_autograd.any() or labelled.trace.gpu.name.like(BACKWARD_KERNEL).any():
        return True
    return bool(labelled.once(updating).any())


FIX = Fix(
    name="overlap_comm",
    words="overlapping communication with computation",
    summary="Collectives run on a separate stream, concurrently with kernels that do not need their result.",
    assumptions=(
        "A collective still waits for its input; only the end of the step waits for its result.",
        (
            "A collective that waits for other ranks for most of its time, as equal ones that are shorter show, does "
            "not change."
        ),
        "Kernels that run concurrently with a collective slow down a little.",
        (
            "A long gap of the CPU that ends with a collective was a wait for it. The best case takes all gaps beside "
            "exposed collectives for such waits, the worst case none."
        ),
    ),
    effort="few_lines",
    apply=apply,
    findings=(
        Rule(
            name="exposed_collective",
            cause="comm",
            summary="communication that does not overlap with computation",
            look=exposed_collective,
            advice=Advice(
                pytorch=(
                    "Overlap communication with the backward pass: DistributedDataParallel(model, "
                    "gradient_as_bucket_view=True, bucket_cap_mb=25) and model.no_sync() while gradients "
                    "accumulate; with FSDP2, fully_shard each layer and "
                    "layer.set_modules_to_forward_prefetch([next_layer])."
                ),
                cuda=(
                    "Call ncclAllReduce and similar on a separate stream, after cudaStreamWaitEvent for what "
                    "they send, and let the computing stream wait for an event only where it needs the result."
                ),
                other=(
                    "Issue collectives asynchronously, as soon as their data is ready, and wait for them where the "
                    "result is needed."
                ),
            ),
            most="medium",
            least_gain=0.0,
        ),
    ),
    needs=("collectives by their kernel names",),
    after=("at_roofline",),
    not_tried="it depends on how the program makes its communication",
)
