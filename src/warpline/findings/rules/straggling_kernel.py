"""Single kernels that take many times what their siblings take."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.findings.words import counted
from warpline.replay.whatif import Prediction
from warpline.units import duration


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    change = evidence.changed(RULE.fix)
    late = change.work
    if not evidence.per_step(late):
        return None
    usual = evidence.time_per_step(late) - float(change.saved_ns[evidence.in_steps(late)].sum()) / evidence.steps
    return Claim(
        f"Single kernels straggle: {counted(evidence.per_step(late))} a step take "
        f"{duration(evidence.time_per_step(late))}, where others of the same name, grid and shapes take "
        f"{duration(usual)}.",
        evidence.costliest_places(late),
    )


RULE = Rule(
    name="straggling_kernel",
    cause="kernel",
    fix="even_out",
    how=(
        "Look at what is special about that call: other work beside it (nvidia-smi pmon), clocks (nvidia-smi -q -d "
        "CLOCK,PERFORMANCE), managed memory, or data that sends all threads to one address (index_add_, scatter_add_)."
    ),
    look=look,
    most="low",
)
