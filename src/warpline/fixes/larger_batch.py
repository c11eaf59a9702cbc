"""A larger batch: the same launches for more samples."""

from __future__ import annotations

from warpline.estimate import CLEAR_GAIN
from warpline.fixes.claim import Claim
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Advice, Fix, Rule
from warpline.replay.bare_step import LAUNCHING
from warpline.replay.graph_edit import GraphEdit
from warpline.replay.patterns.larger_batches import LargerBatch
from warpline.replay.whatif import Prediction
from warpline.units import duration, several

MIN_IDLE_SHARE = 0.1
"""Share of the step for which the GPU must wait for launches: else more samples hide nothing."""
APPLIED_AFTER = (
    *("cuda_graph", "torch_compile", "batch", "fused_optimizer", "sdpa", "bf16", "fp16", "prefetch"),
    "coalesce_copies",
)
"""What makes launches, kernels and loading cheaper leaves less for a larger batch to share."""


def apply(edit: GraphEdit, case: int) -> int:
    """Do everything in the steps for more samples at once."""
    larger = edit.labelled.once(LargerBatch)
    if larger.times < 2 or larger.passes.accumulated > 1:
        return 0
    return larger.enlarge(edit, larger.times, edit.labelled.in_steps, case)


def small_batch(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """The device waits for launches of kernels that would take little longer for more samples."""
    share = sum(evidence.bare.idle_ns[cause] for cause in LAUNCHING) / evidence.step_ns
    # A loop launches more kernels for more samples.
    if share < MIN_IDLE_SHARE or evidence.gains("batch", CLEAR_GAIN):
        return None
    larger, launched = evidence.labelled.once(LargerBatch), evidence.changed(FIX.name).work
    launches = evidence.per_step(launched)
    each_ns = evidence.time_per_step(launched) / max(launches, 1)
    trained = larger.passes.backward > 0
    result = "; training then sees other gradients" if trained else "; a request may wait for others"
    return Claim(
        f"The GPU waits {100 * share:.0f} % of {evidence.noun.one('each', duration(evidence.step_ns))} for the CPU to "
        f"launch {several(launches, 'operation')} of {duration(each_ns)}: a "
        f"batch {larger.times} times as large needs no more launches (times are for as many samples as now{result}).",
        how=TRAINING.format(times=larger.times) if trained else None,
    )


TRAINING = (
    "Make batch_size of the DataLoader {times} times as large, if memory holds it (torch.cuda.max_memory_allocated()), "
    "with a learning rate to match. It changes the training: compare the loss as well as samples per second."
)

FIX = Fix(
    name="larger_batch",
    words="a larger batch",
    summary="Each step processes more samples with the same launches; times are for as many samples as now.",
    assumptions=(
        (
            "The batch becomes 2, 4 or 8 times as large: the least with which the GPU would have as much to do as the "
            "CPU if all its kernels grew in proportion. If memory was recorded, the batch fits; else check it."
        ),
        (
            "A kernel takes as long as now until it fills the device or meets its roofline, and then grows in "
            "proportion. In the worst case so does what has no recorded grid; at best only the roofline counts."
        ),
        "Updates of parameters do not grow. Copies and collectives grow with the samples.",
        (
            "Loading data, copying it, long host code, a cold start and what the profile does not explain take as long "
            "per sample as now; dispatch, waits and allocations are paid once for the larger batch."
        ),
    ),
    effort="setting",
    apply=apply,
    findings=(
        Rule(
            name="small_batch",
            cause="dispatch",
            summary="a batch too small for the launches of its step",
            look=small_batch,
            advice=Advice(
                pytorch=(
                    "Process more samples in each call: a larger batch_size, several requests together (dynamic "
                    "batching of the server), more environments or prompts at once. Compare samples per second."
                ),
                other="Let the server batch more requests, or use a larger batch. Compare samples per second.",
            ),
            most="medium",
            specific=False,
            least_gain=CLEAR_GAIN,
        ),
    ),
    needs=("ops", "steps", "grids of kernels, or the shapes of ops"),
    after=APPLIED_AFTER,
    keeps_result=False,
    not_tried="the number of samples in a step is the program's own choice",
)
