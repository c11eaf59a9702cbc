"""The device waits while the program gets its data."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.model import Place
from warpline.findings.rule import Claim, Rule
from warpline.replay.whatif import Prediction
from warpline.units import duration

LEAST_SHARE = 0.03
LEAST_STEPS = 2
"""One step has no other to load beside."""


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    waited = evidence.idle["input"] / evidence.steps
    if waited < LEAST_SHARE * evidence.step_ns or evidence.steps < LEAST_STEPS:
        return None
    return Claim(
        f"The GPU is idle for {duration(waited)} of each step while the program gets its data.", _places(evidence)
    )


def _places(evidence: Evidence) -> tuple[Place, ...]:
    copies = evidence.scene.work_text("copy_kind") == "HtoD"
    return evidence.places(copies)


RULE = Rule(
    name="slow_input",
    cause="input",
    fix="prefetch",
    how=(
        "DataLoader(…, num_workers=8, pin_memory=True, prefetch_factor=4, "
        "persistent_workers=True); move work out of the loop."
    ),
    look=look,
)
