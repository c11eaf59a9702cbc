"""The CPU waits for the device inside the step, and the device runs dry."""

from __future__ import annotations

import polars as pl

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.replay.whatif import Prediction
from warpline.units import duration


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    places = evidence.sync_places("synchronise", "blocking copy")
    if not places:
        return None
    calls = evidence.syncs.filter(pl.col("kind").is_in(["synchronise", "blocking copy"]))
    count = int(calls["count"].sum()) / evidence.steps
    blocked = int(calls["blocked_ns"].sum()) / evidence.steps
    return Claim(
        f"{count:,.1f} synchronising calls a step hold the CPU for {duration(blocked)}, and the GPU then runs dry.",
        places,
    )


RULE = Rule(
    name="hidden_sync",
    cause="sync",
    fix="remove_sync",
    how=("Keep results on the device; read them every n-th step, or after the loop; print nothing inside it."),
    look=look,
    least_gain=0.0,
)
