"""Independent small kernels, one after the other on one stream."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.findings.words import several
from warpline.replay.interventions.overlap import SMALL_GRID_SHARE
from warpline.replay.whatif import Prediction
from warpline.units import duration


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    change = evidence.changed(RULE.fix)
    kernels = change.work & (evidence.scene.kind == "kernel")
    copies = change.moved & (evidence.scene.kind == "memcpy")
    if (kernels & evidence.scene.kernels("comm")).any():
        return None
    saved = float(change.saved_ns[evidence.in_steps(kernels)].sum()) / evidence.steps
    if not evidence.per_step(kernels) or saved < evidence.exposed_per_step(copies):
        return None
    return Claim(
        "The same kernels run one after the other, though each fills at most "
        f"{100 * SMALL_GRID_SHARE:.0f} % of the GPU: {several(evidence.per_step(kernels), 'kernel')} a step, "
        f"{duration(evidence.time_per_step(kernels))}.",
        evidence.costliest_places(kernels),
    )


RULE = Rule(
    name="serialised_streams",
    cause="kernel",
    fix="streams",
    how=(
        "Run independent branches side by side: for branch, stream in zip(branches, streams): "
        "stream.wait_stream(torch.cuda.current_stream()), with torch.cuda.stream(stream): outs.append(branch(x)), "
        "then torch.cuda.current_stream().wait_stream(stream); or batch them into one call (torch.bmm)."
    ),
    look=look,
    most="medium",
)
