"""Casts from one type to another that need not be made."""

from __future__ import annotations

import numpy as np

from warpline.fixes.claim import Claim
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Advice, Fix, Rule
from warpline.replay.costs.cost import PESSIMISTIC
from warpline.replay.patterns.casts import casts
from warpline.replay.whatif import Prediction
from warpline.replay.workbench import Workbench
from warpline.units import duration, several


def apply(bench: Workbench, case: int) -> int:
    """No casting kernels."""
    scene = bench.scene
    chosen = np.flatnonzero(casts(scene) & scene.in_steps & ~bench.gone)
    bench.remove_work(chosen[::2] if case == PESSIMISTIC else chosen)
    return len(chosen)


def dtype_casts(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Kernels that only change the type of a tensor."""
    casting = evidence.changed(FIX.name).work
    if not evidence.per_step(casting):
        return None
    return Claim(
        f"Tensors are cast from one type to another: {several(evidence.per_step(casting), 'kernel')} a step, "
        f"{duration(evidence.time_per_step(casting))}.",
        evidence.costliest_places(casting),
    )


FIX = Fix(
    name="drop_casts",
    words="doing without the casts",
    summary="Tensors are made in the type in which they are used, so that nothing is cast on the device.",
    assumptions=(
        "Casts of whole numbers and truth values stay: they are meant.",
        "What reads the cast tensor takes the same time when the tensor had that type from the start.",
        "The worst case keeps half of the casts.",
    ),
    effort="few_lines",
    apply=apply,
    findings=(
        Rule(
            name="dtype_casts",
            cause="kernel",
            summary="kernels that only change a tensor's type",
            look=dtype_casts,
            advice=Advice(
                pytorch=(
                    "Make tensors in the type in which they are used: torch.zeros(n, device='cuda', dtype=x.dtype), "
                    "weights cast once with model.to(torch.bfloat16) instead of w.to(x.dtype) in forward; mind that "
                    "bf16 * fp32 gives fp32."
                ),
                other="Keep tensors in the type in which they are used, so that no kernel only converts them.",
            ),
            most="medium",
        ),
    ),
    needs=("the types of ops' tensors, or ops named _to_copy",),
    after=("warm_up",),
)
