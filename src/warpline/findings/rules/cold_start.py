"""Steps in which code is still being loaded, compiled or tuned."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.findings.words import several
from warpline.replay.graph.model import SEGMENT
from warpline.replay.interventions.warming import STEADY_COLD_NS
from warpline.replay.patterns.calm_steps import MOSTLY
from warpline.replay.whatif import Prediction
from warpline.units import duration

LEAST_SHARE = 0.05
CERTAIN_GAIN = 2.0
"""A replayed gain this large needs no idle time as its witness: compiling may hide behind other work."""
WORTH_COUNTING_NS = 20_000
"""Stretches and calls that lose less are dispatch that a warm CPU does faster."""


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    cold = evidence.idle["cold_start"] / evidence.steps
    change, scene = evidence.changed(RULE.fix), evidence.scene
    # No op dispatches for so long: what goes of such stretches was compiling or planning.
    long = change.host & (change.saved_ns > STEADY_COLD_NS) & (scene.op_share > MOSTLY)
    cold = max(cold, float(change.saved_ns[evidence.in_steps(long)].sum()) / evidence.steps)
    if cold < LEAST_SHARE * evidence.step_ns and prediction.gain.expected < CERTAIN_GAIN:
        return None
    host = evidence.in_steps(change.host & (change.saved_ns > 0))
    saved = float(change.saved_ns[host].sum()) / evidence.steps
    host &= change.saved_ns > WORTH_COUNTING_NS
    segments = host & (scene.graph.kind == SEGMENT)
    calls, tried = host & ~segments, change.work & change.gone
    trials = f", and {several(evidence.per_step(tried), 'kernel')} run only to prepare them" if tried.any() else ""
    return Claim(
        f"The steps are not warm: {duration(saved)} of CPU time in each go into loading, compiling or tuning "
        f"({several(evidence.per_step(segments), 'long stretch', 'long stretches')} and "
        f"{several(evidence.per_step(calls), 'slow call')}){trials}.",
        evidence.host_places(host, change.saved_ns),
    )


RULE = Rule(
    name="cold_start",
    cause="cold_start",
    fix="warm_up",
    how=(
        "Run a few steps of every shape before the steps that count (torch.profiler.schedule(wait=1, warmup=3, "
        "active=5)); capture graphs when the program starts; keep compiled code (TORCHINDUCTOR_CACHE_DIR); keep shapes "
        "fixed or torch.compile(model, dynamic=True)."
    ),
    look=look,
)
