"""The device waits for launches: a CUDA graph launches the whole step at once."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.findings.words import several
from warpline.replay.whatif import Prediction
from warpline.units import duration

LEAST_SHARE = 0.05
"""Of the time; less is not worth a graph."""


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    captured = evidence.changed(RULE.fix).relaunched
    launches = evidence.per_step(captured)
    waiting = evidence.idle["dispatch"] + evidence.idle["launch_latency"]
    share = waiting / max(evidence.trace.window.length_ns, 1)
    if share < LEAST_SHARE or not launches:
        return None
    return Claim(
        f"The GPU waits {share:.0%} of the time for the CPU to launch {several(launches, 'operation')} a step of "
        f"{duration(evidence.time_per_step(captured) / launches)} each.",
        evidence.places(captured),
    )


RULE = Rule(
    name="launch_bound",
    cause="dispatch",
    fix="cuda_graph",
    how=(
        "model = torch.compile(model, mode='reduce-overhead'), or capture by hand after a warm-up on a side stream: "
        "with torch.cuda.graph(graph): out = model(fixed_input); then fixed_input.copy_(x); graph.replay() "
        "(torch.cuda.make_graphed_callables does it for modules, backward included)."
    ),
    look=look,
    specific=False,
)
