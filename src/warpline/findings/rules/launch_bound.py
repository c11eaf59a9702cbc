"""The device waits for launches: a CUDA graph launches the whole step at once."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.replay.whatif import Prediction
from warpline.units import duration

LEAST_SHARE = 0.05
"""Of the time; less is not worth a graph."""


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    launches = evidence.per_step(evidence.scene.is_work)
    waiting = evidence.idle["dispatch"] + evidence.idle["launch_latency"]
    share = waiting / max(evidence.trace.window.length_ns, 1)
    if share < LEAST_SHARE:
        return None
    kernel = evidence.time_per_step(evidence.scene.is_work) / max(launches, 1)
    return Claim(
        f"The GPU waits {share:.0%} of the time for the CPU to launch {launches:,.0f} operations a step of "
        f"{duration(kernel)} each.",
        evidence.places(evidence.scene.is_work),
    )


RULE = Rule(
    name="launch_bound",
    cause="dispatch",
    fix="cuda_graph",
    how=(
        "Capture the step in a CUDA graph: torch.cuda.graph, "
        "make_graphed_callables, or torch.compile(mode='reduce-overhead')."
    ),
    look=look,
    specific=False,
)
