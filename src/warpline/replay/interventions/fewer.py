"""A stream of tiny kernels, made fewer."""

from __future__ import annotations

from warpline.replay.bench import Bench
from warpline.replay.interventions.fusion import fused_optimizer, torch_compile
from warpline.replay.interventions.registry import intervention


@intervention(
    "fewer_kernels",
    44,
    "Tiny kernels become fewer: the optimiser is fused, and the rest is compiled piece by piece between the waits.",
    "What `fused_optimizer` and `torch_compile` assume, both together.",
)
def fewer_kernels(bench: Bench, case: int) -> int:
    """The optimiser first, then chains of what remains."""
    return fused_optimizer(bench, case) + torch_compile(bench, case)
