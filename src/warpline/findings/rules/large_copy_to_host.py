"""Detours of tensors through the host, which the device could spare them."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.findings.words import several
from warpline.replay.whatif import Prediction
from warpline.trace.columns import Bools
from warpline.units import duration, size

REDUCE = (
    "Reduce on the device (argmax, mean, topk) and copy only what you look at: logits.argmax(-1).cpu() instead of "
    "logits.cpu().argmax(-1)."
)
STAY = "What goes back to the device need not leave it: write what NumPy does in between with torch's ops."
MAKE = (
    "Make tensors where they are used: torch.randn(shape, device='cuda'); masks once, as a buffer of the module "
    "(register_buffer)."
)


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    change = evidence.changed(RULE.fix)
    down = change.work & (evidence.scene.work_text("copy_kind") == "DtoH")
    up = change.work & ~down
    made, back = up & ~change.gone, up & change.gone
    parts = []
    if evidence.per_step(down):
        again = f", and {several(evidence.per_step(back), 'copy', 'copies')} back" if evidence.per_step(back) else ""
        parts.append(
            "Whole tensors go to the host, which works on them at once: "
            f"{_counted(evidence, down, 'large copy')}{again}."
        )
    if evidence.per_step(made):
        parts.append(
            f"In the middle of the step the CPU makes tensors for the device (masks, noise): "
            f"{_counted(evidence, made, 'copy')}."
        )
    if not parts:
        return None
    advice = [text for text, nodes in ((REDUCE, down), (STAY, back), (MAKE, made)) if evidence.per_step(nodes)]
    return Claim(" ".join(parts), evidence.places(down | made), " ".join(advice))


def _counted(evidence: Evidence, copies: Bools, word: str) -> str:
    total = float(evidence.scene.bytes[evidence.in_steps(copies)].sum()) / evidence.steps
    count = several(evidence.per_step(copies), word, f"{word.removesuffix('y')}ies")
    return f"{count} a step, {size(total)}, {duration(evidence.time_per_step(copies))}"


RULE = Rule(
    name="large_copy_to_host",
    cause="transfer",
    fix="reduce_before_copy",
    how=f"{REDUCE} {MAKE}",
    look=look,
)
