"""Fuses a stream of tiny kernels."""

from __future__ import annotations

from warpline.fixes.claim import Claim
from warpline.fixes.cuda_graph import FIX as CUDA_GRAPH
from warpline.fixes.evidence import Evidence
from warpline.fixes.fused_optimizer import FIX as FUSED_OPTIMIZER
from warpline.fixes.model import Advice, Fix, Rule
from warpline.fixes.torch_compile import FIX as TORCH_COMPILE
from warpline.replay.graph_edit import GraphEdit
from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.patterns.launch_runs import MAX_WAITS_PER_STEP
from warpline.replay.patterns.waits import awaited, awaited_calls
from warpline.replay.whatif import Prediction
from warpline.trace.arrays import Bools
from warpline.units import count, duration

TINY_IN_OPS = 0.5
"""A kernel that takes less than this share of the op that launches it cannot keep the device busy."""
MIN_KERNELS = 50
"""Tiny kernels per step."""
MIN_TINY_SHARE = 0.8
"""Share of all kernels."""
MIN_IDLE_SHARE = 0.3
"""Share of the time; a busier device does not wait for launches."""


def short_kernels(labelled: LabelledGraph) -> Bools:
    """Kernels of the steps that take less time than their launch."""
    graph = labelled.graph
    tiny = graph.measured_end - graph.measured_start < TINY_IN_OPS * labelled.host.launched_op.expected
    return labelled.is_kernel & labelled.in_steps & tiny


def apply(edit: GraphEdit, case: int) -> int:
    """Fuse the optimizer first, then the chains that remain."""
    labelled = edit.labelled
    tiny, whole = int(short_kernels(labelled).sum()), int((labelled.is_kernel & labelled.in_steps).sum())
    if tiny < MIN_KERNELS * labelled.step_count or tiny < MIN_TINY_SHARE * whole:
        return 0
    if len(awaited_calls(labelled)) <= MAX_WAITS_PER_STEP * labelled.step_count:
        return 0
    return FUSED_OPTIMIZER.apply(edit, case) + TORCH_COMPILE.apply(edit, case)


def tiny_kernels(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """A stream of tiny kernels: each costs more to launch than to run."""
    change = evidence.changed(FIX.name)
    tiny = short_kernels(evidence.labelled) & (change.work | change.relaunched)
    launched, whole = evidence.per_step(tiny), evidence.per_step(evidence.labelled.is_kernel)
    waits = evidence.per_step(awaited(evidence.labelled))
    if waits <= MAX_WAITS_PER_STEP or launched < MIN_KERNELS or evidence.bare.idle_share < MIN_IDLE_SHARE:
        return None
    time = evidence.time_per_step(tiny)
    return Claim(
        f"Most kernels are tiny: {count(launched)} of {count(whole)} kernels {evidence.noun.per} take "
        f"{duration(time / launched)} on average, {duration(time)} in "
        f"{evidence.noun.lasting(duration(evidence.step_ns))}; {count(waits)} waits keep "
        f"{evidence.noun.one('the')} from being one CUDA graph, but {count(evidence.per_step(tiny & change.gone))} "
        "of the kernels can be fused.",
        evidence.places(tiny),
    )


FIX = Fix(
    name="fewer_kernels",
    words="fusing the tiny kernels",
    summary=("The optimizer is fused, and the remaining tiny kernels are compiled piece by piece between the waits."),
    assumptions=(
        "The assumptions of `fused_optimizer` and `torch_compile` together.",
        ("Applies only if nearly all kernels are tiny and more than three waits a step prevent a single CUDA graph."),
    ),
    effort="few_lines",
    apply=apply,
    findings=(
        Rule(
            name="tiny_kernels",
            cause="dispatch",
            summary="many tiny kernels, with waits that prevent a CUDA graph",
            look=tiny_kernels,
            advice=Advice(
                pytorch=(
                    "Launch fewer kernels: torch.optim.AdamW(…, fused=True), model = "
                    "torch.compile(model), torch._foreach_add_ instead of loops over parameters, a larger batch. "
                    "Waits inside the step (.item(), x[mask]) prevent capture as a CUDA graph."
                ),
                cuda=(
                    "Merge neighbouring kernels into one, and copy fewer results in the middle of the step, so that "
                    "what remains can be captured as a CUDA graph."
                ),
                other=(
                    "Compile the step (jax.jit, tf.function(jit_compile=True)), and read no results during the step."
                ),
            ),
            most="medium",
            specific=False,
        ),
    ),
    needs=("kernels with their launches", "CPU ops"),
    after=("batch",),
    first=CUDA_GRAPH.first,
    not_tried="the kernels are launched by the program's own code",
)
