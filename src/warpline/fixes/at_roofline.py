"""Kernels far from what the chip can do, rewritten: the bound of all fixes of kernels."""

from __future__ import annotations

import numpy as np

from warpline.fixes.claim import Claim
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Advice, Fix, Rule
from warpline.replay.costs.cost import OPTIMISTIC, Cost
from warpline.replay.whatif import Prediction
from warpline.replay.workbench import Workbench
from warpline.trace.columns import NONE
from warpline.units import duration, several

FAR = 5.0
"""A kernel this many times above its pace needs another algorithm; libraries' kernels are seldom so far."""
REWRITTEN = Cost(1.0, 4.0, 8.0, "six kernels, rewritten: 3.1, 3.4, 3.6, 4.4, 7 and 12 times their floors (H200)")
EXTRA_LAUNCHES = Cost(0.0, 4.0, 6.0, "an algorithm in several passes; not measured")
"""Each of these passes costs the host an op, and the device a kernel, however little it does."""


def apply(bench: Workbench, case: int) -> int:
    """Kernels far from the roof get near it."""
    scene = bench.scene
    floor = scene.floor_ns()
    chosen = np.flatnonzero((floor > 0) & scene.in_steps & ~bench.gone)
    if case != OPTIMISTIC:
        pace = scene.floors.pace_ns()[scene.graph.row[chosen]]
        chosen = chosen[(bench.graph.duration[chosen] > FAR * pace) & (scene.kind[chosen] == "kernel")]
    launches = EXTRA_LAUNCHES.at(case)
    launching = launches * scene.host.launched_op.at(case)
    new = REWRITTEN.at(case) * floor[chosen] + launches * scene.device.smallest_kernel.at(case)
    worth = bench.graph.duration[chosen] > new + launching
    chosen, new = chosen[worth], new[worth]
    bench.shorten(chosen, new, floor[chosen])
    calls = scene.call_of_work[chosen]
    np.add.at(bench.graph.duration, calls[calls != NONE], launching)
    return len(chosen)


def below_roofline(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Kernels far from what the chip can do, without a more specific reason."""
    change = evidence.changed(FIX.name)
    slow = change.work
    least = evidence.time_per_step(slow) - float(change.saved_ns[evidence.in_steps(slow)].sum()) / evidence.steps
    return Claim(
        f"A step spends {duration(evidence.time_per_step(slow))} in "
        f"{several(evidence.per_step(slow), 'kernel', 'kernels')} that take many times what their work needs; done in "
        f"another way, it takes about {duration(least)}.",
        evidence.costliest_places(slow),
    )


FIX = Fix(
    name="at_roofline",
    words="kernels near the roof",
    summary=(
        "Every kernel whose work is known and that is far from its pace is rewritten; in the best case, "
        "which is the bound of all fixes of kernels, all run at the roof."
    ),
    assumptions=(
        (
            "A kernel's pace is its roofline floor, or what its blocks take to start, its additions to memory, "
            "whole sectors and the passes of a sort: one that takes less than five times its pace stays as it is."
        ),
        (
            "A rewritten kernel takes four times its floor, as others did, and becomes several, whose launches cost "
            "CPU time."
        ),
        "Work and bytes come from the recorded shapes, ceilings from the device.",
        "Kernels whose work is unknown stay as they are.",
    ),
    effort="rewrite",
    apply=apply,
    findings=(
        Rule(
            name="below_roofline",
            cause="kernel",
            summary="kernels far from what the chip can do, for no other reason",
            look=below_roofline,
            advice=Advice(
                pytorch=(
                    "warpline roofline TRACE lists them by time lost. Many additions to one place (index_add_, "
                    "scatter_add_, the gradient of x[index]) are better sorted and summed, or a gradient of "
                    "embedding; few rows better cut into parts. Look inside the worst with Nsight Compute (ncu "
                    "--set full)."
                ),
                cuda=(
                    "warpline roofline TRACE lists them by time lost. Sum within a block before an atomicAdd, make "
                    "neighbouring threads read neighbouring addresses, and give every multiprocessor work; look "
                    "inside the worst with Nsight Compute (ncu --set full)."
                ),
                other=(
                    "warpline roofline TRACE lists them by time lost; look inside the worst with Nsight Compute "
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
)
