"""Fixes of arithmetic: tensor cores, half precision, alignment."""

from __future__ import annotations

from functools import cache

import numpy as np

from warpline.kernels import KernelIdentity
from warpline.replay.bench import Bench
from warpline.replay.interventions import constants
from warpline.replay.interventions.registry import intervention
from warpline.replay.model import Bools, Floats
from warpline.replay.scene import Scene
from warpline.trace.nesting import NONE
from warpline.work.parse import json_list

MATRIX_CLASSES = {"gemm", "conv"}
FIRST_WITH_NEW_TYPES = 8
HALF_TYPES = {"f16", "bf16"}
ALIGNMENT_HALF, ALIGNMENT_SINGLE = 8, 4
"""Elements to which the sizes of a product must be aligned for the fast kernels: 16 bytes (cuBLAS documentation)."""
PRODUCTS = [f"aten::{name}" for name in ("mm", "addmm", "bmm", "baddbmm", "matmul", "linear", "_addmm_activation")]
"""Ops whose shapes are those of a product; a convolution's are not."""
MEMORY_CLASSES = ("elementwise", "norm", "softmax", "reduction", "layout", "memory", "pooling")


def _on_cuda_cores(identity: KernelIdentity) -> bool:
    return (
        identity.kernel_class in MATRIX_CLASSES
        and identity.tensor_core is False
        and identity.dtype.a in {"f32", None}
        and identity.dtype.out in {"f32", None}
    )


def in_double(identity: KernelIdentity) -> bool:
    """Whether a kernel computes in 64 bits."""
    return "f64" in {identity.dtype.a, identity.dtype.acc, identity.dtype.out}


def _shorten_doubles(bench: Bench, case: int) -> int:
    """Kernels in 64 bits take the time of 32 bits, products that of TF32."""
    scene = bench.scene
    doubles = scene.kernels_where(in_double) & scene.in_steps & ~bench.gone
    matrix = doubles & scene.kernels(*MATRIX_CLASSES)
    for nodes, share in ((matrix, constants.DOUBLE_TO_TF32), (doubles & ~matrix, constants.DOUBLE_MEMORY)):
        chosen = np.flatnonzero(nodes)
        bench.shorten(chosen, bench.graph.duration[chosen] * share.at(case))
    return int(doubles.sum())


def _attends_in_fp32(identity: KernelIdentity) -> bool:
    return identity.kernel_class == "attention" and identity.dtype.a == "f32"


def _in_tf32(identity: KernelIdentity) -> bool:
    single = identity.dtype.a == "tf32" or identity.dtype.out == "f32"
    return identity.kernel_class in MATRIX_CLASSES and identity.tensor_core is True and single


def _has_new_types(scene: Scene) -> bool:
    """TF32 and bf16 need compute capability 8.0; a device that does not say is given the benefit of the doubt."""
    major = scene.trace.devices["compute_major"].drop_nulls()
    return not len(major) or int(major[0]) >= FIRST_WITH_NEW_TYPES


def _drop_transposes(bench: Bench, products: Bools) -> None:
    """Convolutions on CUDA cores turn channels-last tensors round and back; those on tensor cores take them as they
    are."""
    scene = bench.scene
    turning = scene.kernels_where(lambda identity: identity.op in {"nchw_to_nhwc", "nhwc_to_nchw"})
    first = scene.kernels_where(lambda identity: identity.op == "nhwc_to_nchw")
    ops = np.intersect1d(scene.op[products], scene.op[first])
    bench.remove_work(np.flatnonzero(turning & np.isin(scene.op, ops[ops != NONE])), dispatch=False)


def _convert(bench: Bench, nodes: Bools, dtype: str, slow: Floats, fast: Floats, case: int) -> int:
    """Products of the slow series take the time of the fast one, never below the floor in that precision."""
    chosen = np.flatnonzero(nodes)
    new = constants.converted(bench.graph.duration[chosen], slow, fast) * constants.PRECISION_SPREAD.at(case)
    bench.shorten(chosen, new, bench.scene.floor_ns(dtype)[chosen])
    return len(chosen)


@intervention(
    "tf32",
    10,
    "fp32 matrix products and convolutions run on tensor cores in TF32.",
    "Ten bits of mantissa are enough for the products, and 32 bits for what is computed in 64.",
    "A product gains what square products of the same duration gain on an H200, and never passes the roofline.",
)
def tf32(bench: Bench, case: int) -> int:
    """Products on CUDA cores become TF32 ones."""
    scene = bench.scene
    if not _has_new_types(scene):
        return 0
    nodes = scene.kernels_where(_on_cuda_cores) & scene.in_steps & ~bench.gone
    _drop_transposes(bench, nodes)
    changed = _convert(bench, nodes, "tf32", constants.FP32_NS, constants.TF32_NS, case)
    return changed + _shorten_doubles(bench, case)


@intervention(
    "bf16",
    10,
    "The model runs in bfloat16 (autocast, or weights in that type).",
    "Products and attention run on tensor cores in bf16; kernels that move fp32 data move half of it, less what "
    "autocast adds.",
    "Casts between types disappear, since everything has the same one.",
)
def bf16(bench: Bench, case: int) -> int:
    """Products become bf16 ones, memory-bound kernels shrink."""
    scene = bench.scene
    if not _has_new_types(scene):
        return 0
    usable = scene.in_steps & ~bench.gone
    changed = _shorten_doubles(bench, case)
    _drop_transposes(bench, scene.kernels_where(_on_cuda_cores) & usable)
    doubles = scene.kernels_where(lambda identity: in_double(identity) and identity.kernel_class in MATRIX_CLASSES)
    _convert(bench, doubles & usable, "bf16", constants.TF32_NS, constants.BF16_NS, case)
    for test, series in ((_on_cuda_cores, constants.FP32_NS), (_in_tf32, constants.TF32_NS)):
        changed += _convert(bench, scene.kernels_where(test) & usable, "bf16", series, constants.BF16_NS, case)
    casts = np.flatnonzero(scene.under_op("aten::_to_copy") & scene.kernels("memory", "elementwise", "layout") & usable)
    if not changed and not len(casts):
        return 0
    bench.remove_work(casts)
    attention = np.flatnonzero(scene.kernels_where(_attends_in_fp32) & usable)
    faster = bench.graph.duration[attention] * constants.SDPA_TO_HALF.at(case)
    bench.shorten(attention, faster, scene.floor_ns("bf16")[attention])
    moving = scene.kernels_where(lambda identity: identity.kernel_class in MEMORY_CLASSES and identity.dtype.a == "f32")
    chosen = np.flatnonzero(moving & usable & ~bench.gone & ~scene.within_ranges(r"^Optimizer\.step"))
    now = bench.graph.duration[chosen]
    bench.shorten(chosen, np.maximum(now * constants.HALF_MEMORY.at(case), np.minimum(now, 2_000.0)))
    return changed + len(chosen) + len(casts) + len(attention)


@intervention(
    "pad",
    12,
    "Sizes of matrix products are padded to a multiple of 8 (16-bit) or 4 (fp32), so that the fast kernels apply.",
    "The shapes of the op around a product show sizes that are not aligned; without shapes, the kernel's name does.",
    "Padding itself costs nothing that matters: it is done once, in the weights.",
)
def pad(bench: Bench, case: int) -> int:
    """Misaligned products take the time of aligned ones."""
    scene = bench.scene
    nodes = scene.kernels("gemm") & scene.in_steps & ~bench.gone & scene.once(misaligned)
    return _convert(bench, nodes, "", constants.ODD_NS, constants.EVEN_NS, case)


def misaligned(scene: Scene) -> Bools:
    """Work of ops whose matrices have a size that is not aligned; without shapes, kernels that are made for such."""
    shapes, dtypes = scene.op_column("shapes"), scene.op_column("dtypes")
    known = {pair: _odd(*pair) for pair in set(zip(shapes[scene.work], dtypes[scene.work], strict=True))}
    result = np.zeros(len(scene.graph), bool)
    result[scene.work] = [known[pair] for pair in zip(shapes[scene.work], dtypes[scene.work], strict=True)]
    result &= np.isin(scene.op_name, PRODUCTS)
    result |= scene.kernels_where(_takes_single_elements) & (shapes == "")
    return result


def _takes_single_elements(identity: KernelIdentity) -> bool:
    """Whether a product's kernel is one for operands that are aligned to nothing: its name says so."""
    return identity.kernel_class == "gemm" and identity.alignment == 1 and identity.dtype.a in HALF_TYPES


@cache
def _odd(shapes: str, dtypes: str) -> bool:
    for size, dtype in zip(json_list(shapes), json_list(dtypes), strict=False):
        matrix = isinstance(size, list) and len(size) >= 2 and all(isinstance(value, int) for value in size)
        half = dtype in {"c10::Half", "c10::BFloat16"}
        unit = ALIGNMENT_HALF if half else ALIGNMENT_SINGLE if dtype == "float" else 1
        if matrix and any(value % unit and value > 1 for value in size[-2:]):
            return True
    return False
