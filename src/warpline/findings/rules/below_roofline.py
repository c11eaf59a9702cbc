"""Kernels far from what the chip can do, without a more specific reason."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.findings.words import several
from warpline.replay.whatif import Prediction
from warpline.units import duration


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    change = evidence.changed(RULE.fix)
    slow = change.work
    least = evidence.time_per_step(slow) - float(change.saved_ns[evidence.in_steps(slow)].sum()) / evidence.steps
    return Claim(
        f"A step spends {duration(evidence.time_per_step(slow))} in "
        f"{several(evidence.per_step(slow), 'kernel', 'kernels')} that take many times what their work needs; done in "
        f"another way, it takes about {duration(least)}.",
        evidence.costliest_places(slow),
    )


RULE = Rule(
    name="below_roofline",
    cause="kernel",
    fix="at_roofline",
    how=(
        "warpline roofline TRACE lists them by time lost. Many additions to one place (index_add_, scatter_add_, the "
        "gradient of x[index]) are better sorted and summed, or a gradient of embedding; few rows better cut into "
        "parts. Look inside the worst with Nsight Compute (ncu --set full)."
    ),
    look=look,
    most="low",
    specific=False,
    least_gain=1.3,
)
