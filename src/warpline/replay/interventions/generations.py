"""Matrix kernels that were written for an older chip than the one they run on."""

from __future__ import annotations

import re

import numpy as np

from warpline.kernels import KernelIdentity
from warpline.replay.costs import constants
from warpline.replay.interventions.precision import misaligned
from warpline.replay.interventions.registry import intervention
from warpline.replay.scene import Scene
from warpline.replay.workbench import Workbench
from warpline.trace.columns import Bools

WELL_ABOVE = 1.5
"""A kernel that takes so many times what a square product with its floor takes on an H200 is slow; the rest is not."""


def old_kernels(scene: Scene) -> Bools:
    """Matrix products on tensor cores of an older generation than the device has.

    Misaligned ones, and those on CUDA cores, are old for a reason that is another fix's business; what convolutions
    could reach is not known from products.
    """
    major = scene.trace.devices["compute_major"].drop_nulls()
    if not len(major):
        return np.zeros(len(scene.graph), bool)

    def old(identity: KernelIdentity) -> bool:
        made_for = re.fullmatch(r"sm(\d+)\d", identity.arch or "")
        matrix = identity.kernel_class == "gemm" and identity.tensor_core is True
        return matrix and made_for is not None and int(made_for[1]) < int(major[0])

    convolving = scene.under_op(*(name for name in scene.known_ops if "conv" in name))
    chosen: Bools = scene.kernels_where(old) & ~scene.once(misaligned) & ~convolving
    return chosen


@intervention(
    "newer_kernels",
    14,
    "Products on tensor cores with kernels of an older architecture run on kernels of the device's own.",
    "A product whose work is known takes what a square one with the same floor takes on an H200, never below the "
    "roofline; it changes only if it takes 1.5 times that now.",
    "Where no kernel is that slow, nothing changes: old kernels are often as good.",
)
def newer_kernels(bench: Workbench, case: int) -> int:
    """Slow old kernels take the usual time of their work."""
    scene = bench.scene
    old = np.flatnonzero(scene.once(old_kernels) & scene.in_steps & ~bench.gone)
    floor = scene.floor_ns()
    single = scene.kernels_where(lambda identity: identity.dtype.a in {"tf32", "f32"})
    for dtype, kind in (("tf32", single), ("bf16", ~single)):
        mine = old[kind[old] & (floor[old] > 0)]
        usual = constants.usual_ns(floor[mine], dtype) * constants.PRECISION_SPREAD.at(case)
        slow = bench.graph.duration[mine] > WELL_ABOVE * usual
        bench.shorten(mine[slow], usual[slow], floor[mine[slow]])
    return len(old)
