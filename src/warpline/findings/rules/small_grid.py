"""Long kernels that leave most of the device empty."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.findings.words import counted, listed
from warpline.replay.interventions.grids import Grids
from warpline.replay.whatif import Prediction
from warpline.units import duration

WORTH_TRYING_FIRST = 1.05
"""Small kernels that can run side by side are that rule's: see serialised_streams."""


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    empty, grids = evidence.changed(RULE.fix).work, Grids(evidence.scene)
    if evidence.gains("streams", WORTH_TRYING_FIRST) and (empty & evidence.changed("streams").work).any():
        return None
    few, tails = empty & grids.few(), empty & grids.tails()
    parts = [
        f"{counted(evidence.per_step(nodes))} a step {what} ({duration(evidence.time_per_step(nodes))})"
        for what, nodes in (
            (f"with fewer blocks than half of the {grids.sms:.0f} multiprocessors", few),
            ("whose last wave of blocks is nearly empty", tails),
        )
        if evidence.per_step(nodes)
    ]
    if not parts:
        return None
    return Claim(f"Long kernels leave most of the GPU empty: {listed(parts)}.", evidence.costliest_places(empty))


RULE = Rule(
    name="small_grid",
    cause="kernel",
    fix="fill_gpu",
    how=(
        "Give the kernel more independent pieces: a larger batch, the reduced dimension split in two passes "
        "(x.view(n, parts, -1).sum(-1).sum(-1)), or in a Triton kernel a smaller BLOCK and a grid of at least "
        "torch.cuda.get_device_properties(0).multi_processor_count."
    ),
    look=look,
    most="low",
)
