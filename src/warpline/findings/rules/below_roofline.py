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
        f"{several(evidence.per_step(slow), 'kernel or copy', 'kernels and copies')} whose work the chip could do in "
        f"{duration(least)}.",
        evidence.costliest_places(slow),
    )


RULE = Rule(
    name="below_roofline",
    cause="kernel",
    fix="at_roofline",
    how="warpline roofline TRACE lists them by time lost; look inside the worst with Nsight Compute (ncu --set full).",
    look=look,
    most="low",
    specific=False,
    least_gain=1.3,
)
