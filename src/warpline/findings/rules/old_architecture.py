"""Matrix kernels of an older architecture than the chip has."""

from __future__ import annotations

import numpy as np

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.findings.words import counted, listed
from warpline.kernels import identify
from warpline.replay.interventions.generations import old_kernels
from warpline.replay.whatif import Prediction
from warpline.units import duration

LEAST_SHARE = 0.05
"""Of the step; old kernels that take less are not worth a word."""


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    old, slow = evidence.scene.once(old_kernels), evidence.changed(RULE.fix).work
    chosen = slow if evidence.per_step(slow) else old
    time = evidence.time_per_step(chosen)
    if time < LEAST_SHARE * evidence.step_ns:
        return None
    names = set(evidence.scene.name[np.flatnonzero(evidence.in_steps(chosen))].tolist())
    made_for = sorted({str(identify(name).arch) for name in names})
    how_slow = (
        "slower than products of that size need be" if evidence.per_step(slow) else "as fast as such products are"
    )
    return Claim(
        f"Matrix kernels written for {listed(made_for)} run on a newer chip, {how_slow}: "
        f"{counted(evidence.per_step(chosen))} a step, {duration(time)}.",
        evidence.costliest_places(chosen),
    )


RULE = Rule(
    name="old_architecture",
    cause="kernel",
    fix="newer_kernels",
    how=(
        "Let a newer library choose: a torch built for your CUDA version (python -m torch.utils.collect_env), "
        "torch.backends.cuda.preferred_blas_library('cublaslt'), or torch.compile(model, mode='max-autotune'); "
        "layouts and sizes in multiples of 64 make more kernels eligible."
    ),
    look=look,
    most="medium",
    least_gain=0.0,
)
