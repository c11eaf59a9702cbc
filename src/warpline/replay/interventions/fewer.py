"""A stream of tiny kernels, made fewer."""

from __future__ import annotations

from warpline.replay.interventions.dispatch import MOST_WAITS
from warpline.replay.interventions.fusion import torch_compile
from warpline.replay.interventions.optimizers import fused_optimizer
from warpline.replay.interventions.registry import intervention
from warpline.replay.interventions.waiting import awaited_calls
from warpline.replay.scene import Scene
from warpline.replay.workbench import Workbench
from warpline.trace.columns import Bools

TINY_NS = 5_000
"""About what a launch costs the CPU: a kernel that is shorter cannot keep the device busy."""
LEAST_KERNELS = 50
"""Tiny kernels a step."""
LEAST_TINY = 0.8
"""Of all kernels."""


def tiny_kernels(scene: Scene) -> Bools:
    """Kernels of the steps that take less than their launch."""
    graph = scene.graph
    short: Bools = (scene.kind == "kernel") & scene.in_steps & (graph.measured_end - graph.measured_start < TINY_NS)
    return short


@intervention(
    "fewer_kernels",
    44,
    "Tiny kernels become fewer: the optimiser is fused, and the rest is compiled piece by piece between the waits.",
    "What `fused_optimizer` and `torch_compile` assume, both together.",
    "Only where nearly all kernels are tiny, and more than three waits a step keep them from being one CUDA graph.",
)
def fewer_kernels(bench: Workbench, case: int) -> int:
    """The optimiser first, then chains of what remains."""
    scene = bench.scene
    tiny, whole = int(tiny_kernels(scene).sum()), int(((scene.kind == "kernel") & scene.in_steps).sum())
    if tiny < LEAST_KERNELS * scene.step_count or tiny < LEAST_TINY * whole:
        return 0
    if len(awaited_calls(scene)) <= MOST_WAITS * scene.step_count:
        return 0
    return fused_optimizer(bench, case) + torch_compile(bench, case)
