"""Single kernels that take many times longer than their siblings."""

from __future__ import annotations

import numpy as np

from warpline.fixes.claim import Claim
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Advice, Fix, Rule
from warpline.replay.costs.cost import Cost
from warpline.replay.graph_edit import GraphEdit
from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.whatif import Prediction
from warpline.trace.arrays import Bools, Floats, combinations, grouped
from warpline.units import count, duration

MIN_SIBLINGS = 8
"""The median of a name, grid and shapes needs at least this many kernels."""
MIN_TIMES_MEDIAN, MIN_EXTRA_IN_OPS = 4.0, 2.0
"""A straggler takes so many times the median of its siblings, and longer by more than so many ops of the host."""
MAX_STRAGGLING_SHARE = 0.2
"""If a larger share is that long, the duration has a reason that the name does not show."""
LEFT = Cost(0.0, 0.0, 0.5, "the worst case keeps half of the extra time")


def usual_length(labelled: LabelledGraph) -> Floats:
    """Median duration of each kernel's siblings (same name, grid and recorded shapes); 0 if there are too few."""
    nodes = labelled.work[labelled.is_kernel[labelled.work] & labelled.in_steps[labelled.work]]
    result = np.zeros(len(labelled.graph))
    grid = (labelled.work_number(f"grid_{axis}")[nodes] for axis in "xyz")
    _, alike = combinations(labelled.name.codes[nodes], labelled.op_shapes.codes[nodes], *grid)
    extra = MIN_EXTRA_IN_OPS * labelled.host.launched_op.expected
    for _, siblings in grouped(nodes, alike):
        if len(siblings) >= MIN_SIBLINGS:
            lengths = labelled.graph.duration[siblings]
            usual = float(np.median(lengths))
            long = (lengths > MIN_TIMES_MEDIAN * usual) & (lengths > usual + extra)
            result[siblings] = usual if long.mean() <= MAX_STRAGGLING_SHARE else 0.0
    return result


def stragglers(labelled: LabelledGraph, usual: Floats) -> Bools:
    """Kernels that take many times the median; collectives are excluded, because they wait for other ranks."""
    extra = labelled.graph.duration - usual
    late = (usual > 0) & (labelled.graph.duration > MIN_TIMES_MEDIAN * usual)
    late &= extra > MIN_EXTRA_IN_OPS * labelled.host.launched_op.expected
    return late & ~labelled.kernels("comm")


def apply(edit: GraphEdit, case: int) -> int:
    """Give stragglers the median duration of their siblings."""
    labelled = edit.labelled
    lengths = usual_length(labelled)
    late = np.flatnonzero(stragglers(labelled, lengths) & labelled.in_steps & ~edit.gone)
    usual = lengths[late]
    extra = np.maximum(edit.graph.duration[late] - usual, 0.0)
    edit.shorten(late, usual + LEFT.at(case) * extra)
    return len(late)


def straggling_kernel(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Single kernels that take many times longer than their siblings."""
    change = evidence.changed(FIX.name)
    late = change.work
    if not evidence.per_step(late):
        return None
    usual = evidence.time_per_step(late) - float(change.saved_ns[evidence.in_steps(late)].sum()) / evidence.steps
    return Claim(
        f"Single kernels are much slower than their siblings: {count(evidence.per_step(late))} {evidence.noun.per} "
        f"take {duration(evidence.time_per_step(late))}, where others of the same name, grid and shapes take "
        f"{duration(usual)}.",
        evidence.costliest_places(late),
    )


FIX = Fix(
    name="even_out",
    words="kernels as fast as their siblings",
    summary="Kernels much slower than others of the same name, grid and shapes take as long as those.",
    assumptions=(
        ("The extra time comes from contention, clocks or a page fault, or from data that can be spread more evenly."),
        "The worst case keeps half of the extra time.",
    ),
    effort="rewrite",
    apply=apply,
    findings=(
        Rule(
            name="straggling_kernel",
            cause="kernel",
            summary="one kernel that takes many times longer than its siblings",
            look=straggling_kernel,
            advice=Advice(
                pytorch=(
                    "Check what is special about that call: other processes on the GPU (nvidia-smi pmon), clocks "
                    "(nvidia-smi -q -d CLOCK,PERFORMANCE), managed memory, or data that sends all threads to one "
                    "address (index_add_, scatter_add_)."
                ),
                cuda=(
                    "Check what is special about that launch: other processes on the GPU (nvidia-smi pmon), clocks "
                    "(nvidia-smi -q -d CLOCK,PERFORMANCE), managed memory without cudaMemPrefetchAsync, or atomics "
                    "on one address."
                ),
            ),
            most="low",
        ),
    ),
    needs=("at least eight kernels of one name, grid and shapes",),
    after=("fill_gpu",),
    same_work=True,
    not_tried="it depends on the inputs and their order",
)
