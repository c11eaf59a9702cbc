"""Larger micro-batches: gradients of fewer, larger passes are added up, with the same sum."""

from __future__ import annotations

from warpline.estimate import CLEAR_GAIN
from warpline.fixes.claim import Claim
from warpline.fixes.evidence import Evidence
from warpline.fixes.larger_batch import APPLIED_AFTER
from warpline.fixes.model import Advice, Fix, Rule
from warpline.fixes.tryable import TryableChange
from warpline.replay.graph_edit import GraphEdit
from warpline.replay.patterns.larger_batches import LargerBatch, updating
from warpline.replay.whatif import Prediction
from warpline.units import several


def apply(edit: GraphEdit, case: int) -> int:
    """Do several passes at once; the update stays as it is."""
    labelled = edit.labelled
    larger = labelled.once(LargerBatch)
    if larger.fewer_passes < 2:
        return 0
    return larger.enlarge(edit, larger.fewer_passes, labelled.in_steps & ~updating(labelled), case)


def small_micro_batches(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Gradients of several small passes are added up for one update."""
    larger = evidence.labelled.once(LargerBatch)
    passes, launches = larger.passes.accumulated, evidence.per_step(evidence.changed(FIX.name).work)
    left = passes // larger.fewer_passes
    return Claim(
        f"Gradients of {passes} backward passes are added up for each update, and the GPU waits for their launches "
        f"({several(launches, 'operation')} {evidence.noun.per}): micro-batches {larger.fewer_passes} times as large "
        f"need {several(left, 'pass', 'passes')} for the same result, if memory holds them.",
    )


FIX = Fix(
    name="larger_micro_batch",
    words="larger micro-batches",
    summary="Gradients are accumulated over fewer, larger micro-batches; the update and its result stay the same.",
    assumptions=(
        (
            "All backward passes between two updates are of the same kind. Batch norm and similar layers then see "
            "larger batches; everything else has the same result."
        ),
        "At most eight micro-batches become one. If memory was recorded, they fit; else check it.",
        (
            "A kernel takes as long as now until it fills the device or meets its roofline, and then grows in "
            "proportion. In the worst case so does what has no recorded grid; at best only the roofline counts."
        ),
        (
            "Loading data, copying it, long host code, a cold start and what the profile does not explain take as long "
            "per sample as now; dispatch, waits and allocations are paid once for the larger micro-batch."
        ),
    ),
    effort="setting",
    apply=apply,
    findings=(
        Rule(
            name="small_micro_batches",
            cause="dispatch",
            summary="gradients accumulated over micro-batches that are too small",
            look=small_micro_batches,
            advice=Advice(
                pytorch=(
                    "Multiply the micro-batch (per_device_train_batch_size in transformers) and divide "
                    "gradient_accumulation_steps by the same number, as far as memory holds it "
                    "(torch.cuda.max_memory_allocated())."
                ),
            ),
            most="medium",
            least_gain=CLEAR_GAIN,
        ),
    ),
    needs=("ops", "torch.optim's ranges", "grids of kernels, or the shapes of ops"),
    shows_in_ops=True,
    after=APPLIED_AFTER,
    tried=(
        TryableChange(
            "larger_micro_batch",
            "all micro-batches of an update in one pass, where Trainer or accelerate adds up the gradients",
            "TrainingArguments(per_device_train_batch_size=…, gradient_accumulation_steps=…)  # times N, divided by N",
            lambda use: None if use.passes > 1 else "neither Trainer nor accelerate adds up gradients",
            changes_batches=True,
        ),
    ),
)
