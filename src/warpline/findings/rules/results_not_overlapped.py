"""Results copied back on the computing stream, where they could travel beside it."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.replay.whatif import Prediction
from warpline.units import duration

LEAST_SHARE = 0.03


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    copies = evidence.scene.work_text("copy_kind") == "DtoH"
    time = evidence.time_per_step(copies)
    if time < LEAST_SHARE * evidence.step_ns:
        return None
    return Claim(
        f"Copies to the host take {duration(time)} a step on the stream that computes: nothing runs beside them.",
        evidence.places(copies),
    )


RULE = Rule(
    name="results_not_overlapped",
    cause="transfer",
    fix="streams",
    how="Copy results on a stream of their own: with torch.cuda.stream(copy_stream): host.copy_(x, non_blocking=True)",
    look=look,
    most="medium",
)
