"""Fixes of arithmetic: tensor cores, half precision, alignment."""

from __future__ import annotations

from functools import cache

import numpy as np

from warpline.kernels import KernelIdentity
from warpline.replay.costs import constants
from warpline.replay.interventions.casts import casts
from warpline.replay.interventions.registry import intervention
from warpline.replay.scene import Scene
from warpline.replay.workbench import Workbench
from warpline.trace.columns import NONE, Bools, Floats
from warpline.work import Tensor, call_from_kineto

MATRIX_CLASSES = {"gemm", "conv"}
FIRST_WITH_NEW_TYPES = 8
HALF_TYPES = {"f16", "bf16"}
UNITS = {"bf16": 8, "fp16": 8, "fp32": 4}
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


def _shorten_doubles(bench: Workbench, case: int) -> int:
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


def _drop_transposes(bench: Workbench, products: Bools) -> None:
    """Convolutions on CUDA cores turn channels-last tensors round and back; those on tensor cores take them as they
    are."""
    scene = bench.scene
    turning = scene.kernels_where(lambda identity: identity.op in {"nchw_to_nhwc", "nhwc_to_nchw"})
    first = scene.kernels_where(lambda identity: identity.op == "nhwc_to_nchw")
    ops = np.intersect1d(scene.op[products], scene.op[first])
    bench.remove_work(np.flatnonzero(turning & np.isin(scene.op, ops[ops != NONE])), dispatch=False)


def _convert(bench: Workbench, nodes: Bools, dtype: str, slow: Floats, fast: Floats, case: int) -> int:
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
def tf32(bench: Workbench, case: int) -> int:
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
def bf16(bench: Workbench, case: int) -> int:
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
    casting = np.flatnonzero(scene.once(casts) & usable)
    if not changed and not len(casting):
        return 0
    bench.remove_work(casting)
    attention = np.flatnonzero(scene.kernels_where(_attends_in_fp32) & usable)
    faster = bench.graph.duration[attention] * constants.SDPA_TO_HALF.at(case)
    bench.shorten(attention, faster, scene.floor_ns("bf16")[attention])
    moving = scene.kernels_where(lambda identity: identity.kernel_class in MEMORY_CLASSES and identity.dtype.a == "f32")
    chosen = np.flatnonzero(moving & usable & ~bench.gone & ~scene.within_ranges(r"^Optimizer\.step"))
    now = bench.graph.duration[chosen]
    bench.shorten(chosen, np.maximum(now * constants.HALF_MEMORY.at(case), np.minimum(now, 2_000.0)))
    return changed + len(chosen) + len(casting) + len(attention)


@intervention(
    "pad",
    12,
    "Sizes of matrix products are padded to a multiple of 8 (16-bit) or 4 (fp32), so that the fast kernels apply.",
    "Rows of an operand or of the result, as they lie in memory, do not begin at multiples of 16 bytes: the shapes and "
    "strides of the op around a product show it; without, the kernel's name does.",
    "An aligned product takes no less than a square one with its floor; products on CUDA cores in fp32 stay.",
    "Padding itself costs nothing that matters: it is done once, in the weights.",
)
def pad(bench: Workbench, case: int) -> int:
    """Misaligned products take the time of aligned ones."""
    scene = bench.scene
    chosen = np.flatnonzero(scene.kernels("gemm") & scene.in_steps & ~bench.gone & scene.once(misaligned))
    single = scene.kernels_where(lambda identity: identity.dtype.a in {"tf32", "f32"})[chosen]
    floor = scene.floor_ns()[chosen]
    usual = np.where(single, constants.usual_ns(floor, "tf32"), constants.usual_ns(floor, "bf16"))
    aligned = constants.converted(bench.graph.duration[chosen], constants.ODD_NS, constants.EVEN_NS)
    bench.shorten(chosen, aligned * constants.PRECISION_SPREAD.at(case), usual)
    return len(chosen)


def misaligned(scene: Scene) -> Bools:
    """Work of ops whose matrices have rows that are not aligned; without shapes, kernels that are made for such."""
    columns = [scene.op_column(column) for column in ("shapes", "strides", "dtypes")]
    rows = list(zip(*(column[scene.work] for column in columns), strict=True))
    known = {row: _odd(*row) for row in set(rows)}
    result = np.zeros(len(scene.graph), bool)
    result[scene.work] = [known[row] for row in rows]
    result &= np.isin(scene.op_name, PRODUCTS) & ~scene.kernels_where(_takes_any_alignment_well)
    result |= scene.kernels_where(_takes_single_elements) & (columns[0] == "")
    return result


def _takes_single_elements(identity: KernelIdentity) -> bool:
    """Whether a product's kernel is one for operands that are aligned to nothing: its name says so."""
    return identity.kernel_class == "gemm" and identity.alignment == 1 and identity.dtype.a in HALF_TYPES


def _takes_any_alignment_well(identity: KernelIdentity) -> bool:
    """CUDA cores take single fp32 numbers as they come: their kernels are slow for another reason."""
    return identity.tensor_core is False and identity.dtype.a == "f32"


@cache
def _odd(shapes: str, strides: str, dtypes: str) -> bool:
    """Whether the rows of an operand, or of the result, are not aligned; a result's rows are as long as the last
    operand's. The number of rows does not matter."""
    matrices = [
        tensor
        for tensor in call_from_kineto("", shapes, dtypes, strides).all_tensors()
        if len(tensor.shape) >= 2 and tensor.dtype in UNITS
    ]
    if not matrices:
        return False
    result = matrices[-1].shape[-1]
    odd_result = result > 1 and result % UNITS[matrices[-1].dtype] != 0
    return odd_result or any(_rows_are_odd(tensor) for tensor in matrices)


def _rows_are_odd(tensor: Tensor) -> bool:
    """Whether the longer of a matrix's two strides is not a multiple of 16 bytes; without strides, its size."""
    rows, columns = tensor.shape[-2:]
    if rows <= 1 or columns <= 1:
        return False
    apart = max(tensor.strides[-2:]) if tensor.strides else columns
    return apart % UNITS[tensor.dtype] != 0
