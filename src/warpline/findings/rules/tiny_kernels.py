"""A stream of tiny kernels: each costs more to launch than to run."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.findings.waits import awaited
from warpline.findings.words import counted
from warpline.replay.interventions.dispatch import MOST_WAITS
from warpline.replay.interventions.fewer import LEAST_KERNELS, tiny_kernels
from warpline.replay.whatif import Prediction
from warpline.units import duration

LEAST_IDLE = 0.3
"""Of the time; a device that is busier is not waiting for launches."""


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    change = evidence.changed(RULE.fix)
    tiny = tiny_kernels(evidence.scene) & (change.work | change.relaunched)
    count, whole = evidence.per_step(tiny), evidence.per_step(evidence.scene.kind == "kernel")
    waits = evidence.per_step(awaited(evidence))
    if waits <= MOST_WAITS or count < LEAST_KERNELS or evidence.bare_idle_share < LEAST_IDLE:
        return None
    time = evidence.time_per_step(tiny)
    return Claim(
        f"A stream of tiny kernels: {counted(count)} of {counted(whole)} kernels a step take {duration(time / count)} "
        f"on average, {duration(time)} of work in a step of {duration(evidence.step_ns)}; {counted(waits)} waits keep "
        f"it from being one CUDA graph, but {counted(evidence.per_step(tiny & change.gone))} of the kernels can "
        "be fused away.",
        evidence.places(tiny),
    )


RULE = Rule(
    name="tiny_kernels",
    cause="dispatch",
    fix="fewer_kernels",
    how=(
        "Launch fewer: torch.optim.AdamW(model.parameters(), …, fused=True), model = torch.compile(model), "
        "torch._foreach_add_ instead of loops over parameters, a larger batch. Waits inside the step (.item(), "
        "x[mask]) keep a CUDA graph from capturing it."
    ),
    look=look,
    most="medium",
    specific=False,
)
