"""Removes unnecessary device-to-device copies."""

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
    """Remove kernels of clone, contiguous and repeat, and of `to` that keeps the dtype."""
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
    """Unnecessary device-to-device copies: contiguous(), clone(), materialised transposes."""
    copies = evidence.changed(FIX.name).work
    if not evidence.per_step(copies):
        return None
    return Claim(
        "clone, contiguous, repeat and to make device-to-device copies: "
        f"{several(evidence.per_step(copies), 'copy', 'copies')} a step, {duration(evidence.time_per_step(copies))}.",
        evidence.costliest_places(copies),
    )


FIX = Fix(
    name="drop_copies",
    words="removing the copies",
    summary="Unnecessary clones, contiguous copies and layout changes on the device are removed.",
    assumptions=(
        "Readers of the copy can read the original: GEMMs take either layout, and nothing writes to it.",
        "Copies of gradients that autograd makes stay.",
        (
            "Expanded or repeated tensors are read in place: memory-bound kernels that read such a copy speed up in "
            "proportion to the bytes saved."
        ),
        "The worst case keeps half of the copies.",
    ),
    effort="few_lines",
    apply=apply,
    findings=(
        Rule(
            name="redundant_copies",
            cause="memory",
            summary="unnecessary `contiguous()` and `clone()`",
            look=redundant_copies,
            advice=Advice(
                pytorch=(
                    "Remove .contiguous() and .clone() where the next op takes the tensor as it is (matmuls "
                    "take transposed tensors); use .reshape() instead of .contiguous().view(); write in place."
                ),
                cuda=(
                    "Pass pointers and leading dimensions instead of copying with cudaMemcpyDeviceToDevice; cuBLAS "
                    "takes transposed operands directly."
                ),
            ),
            most="medium",
        ),
    ),
    needs=("ops named clone, contiguous, repeat or to",),
    after=("pad",),
)
