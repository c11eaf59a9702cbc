"""Convolutions in the layout that tensor cores do not like."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.findings.words import listed, several
from warpline.replay.whatif import Prediction
from warpline.units import duration


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    change = evidence.changed(RULE.fix)
    transposes, norms = change.work & change.gone, evidence.scene.kernels("norm")
    kept = change.work & ~change.gone
    parts = [
        f"{several(evidence.per_step(nodes), *noun)} ({duration(evidence.time_per_step(nodes))})"
        for nodes, *noun in (
            (transposes, "transposing kernel"),
            (kept & ~norms, "convolution"),
            (kept & norms, "kernel of norms", "kernels of norms"),
        )
        if evidence.per_step(nodes)
    ]
    if not parts:
        return None
    return Claim(f"Convolutions run channels-first: {listed(parts)} a step.", evidence.places(change.work))


RULE = Rule(
    name="channels_first",
    cause="kernel",
    fix="channels_last",
    how=(
        "model = model.to(memory_format=torch.channels_last), once, and every input "
        "x = x.to('cuda', memory_format=torch.channels_last)"
    ),
    look=look,
)
