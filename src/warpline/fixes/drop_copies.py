"""Copies within the device that nothing needs."""

from __future__ import annotations

import numpy as np

from warpline.fixes.claim import Claim
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Advice, Fix, Rule
from warpline.replay.costs.cost import PESSIMISTIC
from warpline.replay.patterns.casts import keeps_type
from warpline.replay.patterns.expansions import Expansions
from warpline.replay.whatif import Prediction
from warpline.replay.workbench import Workbench
from warpline.units import duration, several


def apply(bench: Workbench, case: int) -> int:
    """No kernels of clone, contiguous and repeat, nor of `to` that keeps the type."""
    scene = bench.scene
    usable = scene.in_steps & ~bench.gone & scene.is_work
    copying = scene.under_op("aten::clone", "aten::contiguous", "aten::repeat")
    copies = np.flatnonzero((copying | scene.once(keeps_type)) & usable & ~scene.of_autograd)
    copies = copies[~np.isin(scene.work_text("copy_kind")[copies], ["HtoD", "DtoH"])]
    dropped = copies[::2] if case == PESSIMISTIC else copies
    bench.remove_work(dropped)
    Expansions(bench, dropped).shorten_readers()
    return len(copies)


def redundant_copies(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Copies within the device that nothing needs: contiguous(), clone(), transposes made real."""
    copies = evidence.changed(FIX.name).work
    if not evidence.per_step(copies):
        return None
    return Claim(
        "clone, contiguous, repeat and to copy within the device: "
        f"{several(evidence.per_step(copies), 'copy', 'copies')} a step, {duration(evidence.time_per_step(copies))}.",
        evidence.costliest_places(copies),
    )


FIX = Fix(
    name="drop_copies",
    words="doing without the copies",
    summary="Clones, contiguous copies and changes of layout on the device that nothing needs are left out.",
    assumptions=(
        "What reads the copy can read the original: products take either layout, and nobody writes to it.",
        "Copies that autograd makes itself, of gradients, stay.",
        (
            "Tensors that were expanded or repeated are read where they are: kernels that the bytes of such a copy "
            "bound take as much less time as there are fewer."
        ),
        "The worst case keeps half of them.",
    ),
    effort="few_lines",
    apply=apply,
    findings=(
        Rule(
            name="redundant_copies",
            cause="memory",
            summary="`contiguous()` and `clone()` that nothing needs",
            look=redundant_copies,
            advice=Advice(
                pytorch=(
                    "Leave out .contiguous() and .clone() where the next op takes the tensor as it is (products "
                    "take transposed ones); use .reshape() instead of .contiguous().view(); write in place."
                ),
                cuda=(
                    "Pass pointers and leading dimensions instead of copying with cudaMemcpyDeviceToDevice; cuBLAS "
                    "takes transposed operands as they are."
                ),
            ),
            most="medium",
        ),
    ),
    needs=("ops named clone, contiguous, repeat or to",),
    after=("pad",),
)
