"""Steps in which code is still being loaded, compiled or tuned."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.replay.whatif import Prediction
from warpline.units import duration

LEAST_SHARE = 0.05


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    cold = evidence.idle["cold_start"] / evidence.steps
    if cold < LEAST_SHARE * evidence.step_ns and prediction.gain.expected < CERTAIN_GAIN:
        return None
    return Claim(
        f"The steps are not warm: the GPU is idle for {duration(cold)} of each while code is loaded, compiled or "
        "tuned.",
        evidence.places(evidence.scene.is_work),
    )


CERTAIN_GAIN = 2.0
"""A replayed gain this large needs no idle time as its witness: compiling may hide behind other work."""

RULE = Rule(
    name="cold_start",
    cause="cold_start",
    fix="warm_up",
    how=(
        "Run a few steps of every shape before measuring; keep compiled code (TORCHINDUCTOR_CACHE_DIR); "
        "keep shapes fixed."
    ),
    look=look,
)
