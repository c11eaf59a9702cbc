"""A loop over what could be one batch."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.findings.words import counted, several
from warpline.replay.whatif import Prediction


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    change = evidence.changed(RULE.fix)
    loops = change.work
    products = evidence.per_step(loops & evidence.scene.kernels("gemm"))
    among = f", {counted(products)} of them matrix products" if products else ""
    return Claim(
        "The same few kernels are launched for one sample (head, tensor) after the other: "
        f"{several(evidence.per_step(loops), 'small kernel')} a step{among}, where a batch needs "
        f"{counted(evidence.per_step(loops & ~change.gone))}.",
        evidence.places(loops),
    )


RULE = Rule(
    name="many_small_gemms",
    cause="dispatch",
    fix="batch",
    how=(
        "Process the batch at once instead of looping over samples: torch.bmm(torch.stack(xs), w), one call with a "
        "larger batch, or torch.func.vmap(f)(xs); over parameters or gradients, torch._foreach_mul_(tensors, factor) "
        "and its like, which take the whole list."
    ),
    look=look,
    most="medium",
)
