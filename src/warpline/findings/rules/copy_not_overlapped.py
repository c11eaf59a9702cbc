"""Copies on the computing stream, where they could run beside it."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.replay.whatif import Prediction
from warpline.units import duration

LEAST_SHARE = 0.03
LEAST_STEPS = 2
"""One step has no other to copy beside."""


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    copies = evidence.scene.work_text("copy_kind") == "HtoD"
    time = evidence.time_per_step(copies)
    waited = evidence.idle["input"] / evidence.steps
    if time < LEAST_SHARE * evidence.step_ns or waited > time or evidence.steps < LEAST_STEPS:
        return None
    return Claim(
        f"Copies to the device take {duration(time)} a step on the stream that computes: nothing runs beside them.",
        evidence.places(copies),
    )


RULE = Rule(
    name="copy_not_overlapped",
    cause="transfer",
    fix="prefetch",
    how=("Copy the next batch on a stream of its own while this one computes: with torch.cuda.stream(copy_stream): …"),
    look=look,
    most="medium",
)
