"""Kernels by compute precision, and their time in a lower precision."""

from __future__ import annotations

import numpy as np

from warpline.kernels import KernelIdentity
from warpline.replay.costs import shares
from warpline.replay.scene import Scene
from warpline.replay.workbench import Workbench
from warpline.trace.columns import NONE, Bools

MATRIX_CLASSES = {"gemm", "conv"}
FIRST_WITH_NEW_TYPES = 8
HALF_TYPES = {"f16", "bf16"}


def on_cuda_cores(identity: KernelIdentity) -> bool:
    """Whether a kernel is an FP32 matmul or convolution without tensor cores."""
    return (
        identity.kernel_class in MATRIX_CLASSES
        and identity.tensor_core is False
        and identity.dtype.a in {"f32", None}
        and identity.dtype.out in {"f32", None}
    )


def in_double(identity: KernelIdentity) -> bool:
    """Whether a kernel computes in FP64."""
    return "f64" in {identity.dtype.a, identity.dtype.acc, identity.dtype.out}


def shorten_doubles(bench: Workbench, case: int) -> int:
    """Gives FP64 kernels the time of FP32, and matmuls that of TF32."""
    scene = bench.scene
    doubles = scene.kernels_where(in_double) & scene.in_steps & ~bench.gone
    matrix = doubles & scene.kernels(*MATRIX_CLASSES)
    for nodes, share in ((matrix, scene.device.double_to_tf32), (doubles & ~matrix, shares.DOUBLE_MEMORY)):
        chosen = np.flatnonzero(nodes)
        bench.shorten(chosen, bench.graph.duration[chosen] * share.at(case))
    return int(doubles.sum())


def has_new_types(scene: Scene) -> bool:
    """TF32 and BF16 need compute capability 8.0; a device without a recorded capability is assumed to have it."""
    major = scene.trace.devices["compute_major"].drop_nulls()
    return not len(major) or int(major[0]) >= FIRST_WITH_NEW_TYPES


def drop_transposes(bench: Workbench, products: Bools) -> None:
    """Convolutions on CUDA cores convert channels-last tensors and back; those on tensor cores do not."""
    scene = bench.scene
    turning = scene.kernels_where(lambda identity: identity.op in {"nchw_to_nhwc", "nhwc_to_nchw"})
    first = scene.kernels_where(lambda identity: identity.op == "nhwc_to_nchw")
    ops = np.intersect1d(scene.op[products], scene.op[first])
    bench.remove_work(np.flatnonzero(turning & np.isin(scene.op, ops[ops != NONE])), dispatch=False)


def convert(bench: Workbench, nodes: Bools, before: str, after: str, case: int) -> int:
    """Gives matmuls in one precision the time of another on this chip, at least the roofline time in that precision."""
    chosen = np.flatnonzero(nodes)
    new = bench.scene.device.converted_ns(bench.graph.duration[chosen], before, after)
    bench.shorten(chosen, new * shares.PRECISION_SPREAD.at(case), bench.scene.floor_ns(after)[chosen])
    return len(chosen)
