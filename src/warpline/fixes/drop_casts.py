"""Removes unnecessary casts from one dtype to another."""

from __future__ import annotations

import numpy as np

from warpline.fixes.claim import Claim
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Advice, Fix, Rule
from warpline.replay.costs.cost import PESSIMISTIC
from warpline.replay.graph_edit import GraphEdit
from warpline.replay.patterns.casts import casts
from warpline.replay.whatif import Prediction
from warpline.units import duration, several


def apply(edit: GraphEdit, case: int) -> int:
    """Remove cast kernels."""
    labelled = edit.labelled
    chosen = np.flatnonzero(casts(labelled) & labelled.in_steps & ~edit.gone)
    edit.remove_work(chosen[::2] if case == PESSIMISTIC else chosen)
    return len(chosen)


def dtype_casts(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Kernels that only change the dtype of a tensor."""
    casting = evidence.changed(FIX.name).work
    if not evidence.per_step(casting):
        return None
    return Claim(
        f"Tensors are cast from one dtype to another: {several(evidence.per_step(casting), 'kernel')} "
        f"{evidence.noun.per}, {duration(evidence.time_per_step(casting))}.",
        evidence.costliest_places(casting),
    )


FIX = Fix(
    name="drop_casts",
    words="removing the casts",
    summary="Tensors are created in the dtype in which they are used, so that nothing is cast on the device.",
    assumptions=(
        "Casts of integers and booleans stay: they are intended.",
        "Kernels that read the cast tensor take the same time without the cast.",
        "The worst case keeps half of the casts.",
    ),
    effort="few_lines",
    apply=apply,
    findings=(
        Rule(
            name="dtype_casts",
            cause="kernel",
            summary="kernels that only change a tensor's dtype",
            look=dtype_casts,
            advice=Advice(
                pytorch=(
                    "Create tensors in the dtype in which they are used: torch.zeros(n, device='cuda', dtype=x.dtype); "
                    "cast weights once with model.to(torch.bfloat16) instead of w.to(x.dtype) in forward; note that "
                    "bf16 * fp32 gives fp32."
                ),
                neutral="Keep tensors in the dtype in which they are used, so that no kernel only converts them.",
            ),
            most="medium",
        ),
    ),
    needs=("the dtypes of ops' tensors, or ops named _to_copy",),
    shows_in_ops=True,
    after=("warm_up",),
    not_tried="the casts stand in the source",
)
