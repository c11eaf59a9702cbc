"""A stream of tiny kernels, made fewer."""

from __future__ import annotations

from warpline.fixes.claim import Claim
from warpline.fixes.evidence import Evidence
from warpline.fixes.fused_optimizer import FIX as FUSED_OPTIMIZER
from warpline.fixes.model import Advice, Fix, Rule
from warpline.fixes.torch_compile import FIX as TORCH_COMPILE
from warpline.replay.patterns.launch_runs import MOST_WAITS
from warpline.replay.patterns.waits import awaited, awaited_calls
from warpline.replay.scene import Scene
from warpline.replay.whatif import Prediction
from warpline.replay.workbench import Workbench
from warpline.trace.columns import Bools
from warpline.units import count, duration

TINY_IN_OPS = 0.5
"""A kernel that takes less than this share of an op with its launch cannot keep the device busy."""
LEAST_KERNELS = 50
"""Tiny kernels a step."""
LEAST_TINY = 0.8
"""Of all kernels."""
LEAST_IDLE = 0.3
"""Of the time; a device that is busier is not waiting for launches."""


def short_kernels(scene: Scene) -> Bools:
    """Kernels of the steps that take less than their launch."""
    graph = scene.graph
    tiny = graph.measured_end - graph.measured_start < TINY_IN_OPS * scene.host.launched_op.expected
    short: Bools = (scene.kind == "kernel") & scene.in_steps & tiny
    return short


def apply(bench: Workbench, case: int) -> int:
    """The optimiser first, then chains of what remains."""
    scene = bench.scene
    tiny, whole = int(short_kernels(scene).sum()), int(((scene.kind == "kernel") & scene.in_steps).sum())
    if tiny < LEAST_KERNELS * scene.step_count or tiny < LEAST_TINY * whole:
        return 0
    if len(awaited_calls(scene)) <= MOST_WAITS * scene.step_count:
        return 0
    return FUSED_OPTIMIZER.apply(bench, case) + TORCH_COMPILE.apply(bench, case)


def tiny_kernels(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """A stream of tiny kernels: each costs more to launch than to run."""
    change = evidence.changed(FIX.name)
    tiny = short_kernels(evidence.scene) & (change.work | change.relaunched)
    launched, whole = evidence.per_step(tiny), evidence.per_step(evidence.scene.kind == "kernel")
    waits = evidence.per_step(awaited(evidence.scene))
    if waits <= MOST_WAITS or launched < LEAST_KERNELS or evidence.bare_idle_share < LEAST_IDLE:
        return None
    time = evidence.time_per_step(tiny)
    return Claim(
        f"A stream of tiny kernels: {count(launched)} of {count(whole)} kernels a step take "
        f"{duration(time / launched)} on average, {duration(time)} of work in a step of {duration(evidence.step_ns)}; {count(waits)} waits keep "
        f"it from being one CUDA graph, but {count(evidence.per_step(tiny & change.gone))} of the kernels can "
        "be fused away.",
        evidence.places(tiny),
    )


FIX = Fix(
    name="fewer_kernels",
    words="fusing them (torch.compile and fused=True)",
    summary=(
        "Tiny kernels become fewer: the optimiser is fused, and the rest is compiled piece by piece between the waits."
    ),
    assumptions=(
        "What `fused_optimizer` and `torch_compile` assume, both together.",
        (
            "Only where nearly all kernels are tiny, and more than three waits a step keep them from being one CUDA "
            "graph."
        ),
    ),
    effort="few_lines",
    apply=apply,
    findings=(
        Rule(
            name="tiny_kernels",
            cause="dispatch",
            summary="a stream of tiny kernels that waits keep out of a graph",
            look=tiny_kernels,
            advice=Advice(
                pytorch=(
                    "Launch fewer: torch.optim.AdamW(model.parameters(), …, fused=True), model = "
                    "torch.compile(model), torch._foreach_add_ instead of loops over parameters, a larger batch. "
                    "Waits inside the step (.item(), x[mask]) keep a CUDA graph from capturing it."
                ),
                cuda=(
                    "Merge neighbouring kernels into one, and copy fewer results in the middle of the step, so that "
                    "what remains can be captured as a CUDA graph."
                ),
                other=(
                    "Compile the step (jax.jit, tf.function(jit_compile=True)), and read no results in the middle "
                    "of it."
                ),
            ),
            most="medium",
            specific=False,
        ),
    ),
    needs=("kernels with their launches", "CPU ops"),
    after=("batch",),
)
