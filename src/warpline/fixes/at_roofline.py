"""Rewrites kernels that are far from the roofline; the best case is an upper bound for every kernel fix."""

from __future__ import annotations

import numpy as np

from warpline.fixes.claim import Claim
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Advice, Fix, Rule
from warpline.replay.costs.cost import OPTIMISTIC, Cost
from warpline.replay.graph_edit import GraphEdit
from warpline.replay.whatif import Prediction
from warpline.trace.arrays import NONE
from warpline.units import duration, several

MIN_ALGORITHM_SLOWDOWN = 5.0
"""A kernel this many times slower than its pace needs another algorithm; library kernels are rarely that slow."""
REWRITTEN = Cost(1.0, 4.0, 8.0, "six kernels, rewritten: 3.1, 3.4, 3.6, 4.4, 7 and 12 times their floors (H200)")
EXTRA_LAUNCHES = Cost(0.0, 4.0, 6.0, "an algorithm in several passes; not measured")
"""Each of these passes costs the host an op, and the device a kernel, however little it does."""


def apply(edit: GraphEdit, case: int) -> int:
    """Move kernels that are far from the roofline close to it."""
    labelled = edit.labelled
    floor = labelled.floor_ns()
    chosen = np.flatnonzero((floor > 0) & labelled.in_steps & ~edit.gone)
    if case != OPTIMISTIC:
        pace = labelled.floors.pace_ns()[labelled.graph.row[chosen]]
        chosen = chosen[(edit.graph.duration[chosen] > MIN_ALGORITHM_SLOWDOWN * pace) & labelled.is_kernel[chosen]]
    launches = EXTRA_LAUNCHES.at(case)
    launching = launches * labelled.host.launched_op.at(case)
    new = REWRITTEN.at(case) * floor[chosen] + launches * labelled.device.smallest_kernel.at(case)
    worth = edit.graph.duration[chosen] > new + launching
    chosen, new = chosen[worth], new[worth]
    edit.shorten(chosen, new, floor[chosen])
    calls = labelled.call_of_work[chosen]
    np.add.at(edit.graph.duration, calls[calls != NONE], launching)
    return len(chosen)


def why_nothing(evidence: Evidence) -> str:
    """The kernels are near their roofline, or their work is unknown."""
    labelled, floor = evidence.labelled, evidence.labelled.floor_ns()
    known = np.flatnonzero((floor > 0) & labelled.in_steps)
    if not len(known):
        return "the FLOPs and bytes of its kernels are unknown"
    time = labelled.graph.duration[known]
    worst = float((time / floor[known]).max())
    return (
        f"the kernels run at {100 * float(floor[known].sum() / time.sum()):.0f} % of the roofline, and none is slower "
        f"than {worst:.1f}× its minimum time: tuning or other tiles have little left to gain"
    )


def below_roofline(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Kernels far from the roofline, with no more specific reason."""
    change = evidence.changed(FIX.name)
    slow = change.work
    least = evidence.time_per_step(slow) - float(change.saved_ns[evidence.in_steps(slow)].sum()) / evidence.steps
    kernels = several(evidence.per_step(slow), "kernel")
    return Claim(
        f"{evidence.noun.one('a').capitalize()} spends {duration(evidence.time_per_step(slow))} in {kernels} far "
        f"from the roofline; rewritten, {'it' if kernels.endswith('1 kernel') else 'they'} "
        f"{'might' if prediction.gain.is_wide else 'would'} take about {duration(least)}.",
        evidence.costliest_places(slow),
    )


FIX = Fix(
    name="at_roofline",
    words="kernels near the roofline",
    summary=(
        "Kernels with known FLOPs and bytes that are far from the roofline are rewritten; in the best case, "
        "an upper bound for every fix that keeps the data type, all of them run at the roofline."
    ),
    assumptions=(
        (
            "A kernel's pace is its roofline floor, or the cost of starting its blocks, of its atomics, of whole "
            "sectors or of a sort's passes, if longer. A kernel below five times its pace does not change."
        ),
        (
            "A rewritten kernel takes four times its floor, as measured on others, and becomes several kernels, whose "
            "launches cost CPU time."
        ),
        "FLOPs and bytes come from the recorded shapes, ceilings from the device.",
        "Kernels with unknown FLOPs and bytes do not change.",
    ),
    effort="rewrite",
    apply=apply,
    why_nothing=why_nothing,
    findings=(
        Rule(
            name="below_roofline",
            cause="kernel",
            summary="kernels far from the roofline, for no more specific reason",
            look=below_roofline,
            advice=Advice(
                pytorch=(
                    "warpline roofline TRACE lists them by lost time. Replace additions to one address (index_add_, "
                    "scatter_add_, the gradient of x[index]) by a sort and a sum, or by the gradient of "
                    "embedding; split a few long rows into parts. Profile the worst with Nsight Compute (ncu "
                    "--set full)."
                ),
                cuda=(
                    "warpline roofline TRACE lists them by lost time. Sum within a block before an atomicAdd, make "
                    "neighbouring threads read neighbouring addresses, and use every multiprocessor; profile "
                    "the worst with Nsight Compute (ncu --set full)."
                ),
                other=(
                    "warpline roofline TRACE lists them by lost time; profile the worst with Nsight Compute "
                    "(ncu --set full)."
                ),
            ),
            most="low",
            specific=False,
            least_gain=1.3,
        ),
    ),
    needs=("the shapes of ops (record_shapes=True)", "the chip and its ceilings"),
    after=("newer_kernels",),
    same_work=True,
    is_limit=True,
    not_tried="it is a limit, not a change",
)
