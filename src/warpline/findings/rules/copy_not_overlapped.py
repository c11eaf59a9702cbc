"""Copies on the computing stream, where they could run beside it."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.findings.words import counted
from warpline.replay.whatif import Prediction
from warpline.units import duration

LEAST_SHARE = 0.03
LEAST_STEPS = 1
"""A step is repeated, so there is another to copy beside; a trace without steps may run once."""


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    copies = evidence.changed(RULE.fix).moved
    time = evidence.exposed_per_step(copies)
    waited = evidence.idle["input"] / evidence.steps
    if time < LEAST_SHARE * evidence.step_ns or waited > time or evidence.recorded_steps < LEAST_STEPS:
        return None
    return Claim(
        f"Copies to the device run on the stream that computes: {counted(evidence.per_step(copies))} a step, "
        f"{duration(evidence.time_per_step(copies))}, of which {duration(time)} with no kernel beside them.",
        evidence.places(copies),
    )


RULE = Rule(
    name="copy_not_overlapped",
    cause="transfer",
    fix="prefetch",
    how=(
        "Copy the next batch while this one computes: with torch.cuda.stream(copy_stream): next_batch = "
        "batch.to('cuda', non_blocking=True) from pinned memory, and "
        "torch.cuda.current_stream().wait_stream(copy_stream) before it is used."
    ),
    look=look,
    most="medium",
)
