"""Results copied back on the computing stream, where they could travel beside it."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.findings.words import counted
from warpline.replay.whatif import Prediction
from warpline.units import duration

LEAST_SHARE = 0.03


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    copies = evidence.changed(RULE.fix).moved
    time = evidence.exposed_per_step(copies)
    if time < LEAST_SHARE * evidence.step_ns:
        return None
    return Claim(
        f"Copies to the host run on the stream that computes: {counted(evidence.per_step(copies))} a step, "
        f"{duration(evidence.time_per_step(copies))}, of which {duration(time)} with no kernel beside them.",
        evidence.places(copies),
    )


RULE = Rule(
    name="results_not_overlapped",
    cause="transfer",
    fix="streams",
    how=(
        "Copy results on a stream of their own into pinned memory: "
        "copy_stream.wait_stream(torch.cuda.current_stream()), then "
        "with torch.cuda.stream(copy_stream): host.copy_(x, non_blocking=True); copy_stream.synchronize() before "
        "the host reads them."
    ),
    look=look,
    most="medium",
)
