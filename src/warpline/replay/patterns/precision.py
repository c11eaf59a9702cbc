"""Kernels by compute precision, and their time in a lower precision."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from warpline.analyses.platform import platform_of
from warpline.hardware.chips import TENSOR
from warpline.hardware.find import find_device
from warpline.kernels import KernelIdentity
from warpline.kernels.grammar import sm_number
from warpline.replay.costs import shares
from warpline.replay.graph_edit import GraphEdit
from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.patterns.casts import FLOATING, HALF_OPS
from warpline.trace.arrays import NONE, Bools
from warpline.work.parse import recorded_types

GEMM_CLASSES = {"gemm", "conv"}
"""Classes of kernels that TF32 and bf16 shorten; attention has its own fix."""
VOLTA = (7, 0)
FIRST_WITH_TENSOR_CORES = VOLTA[0]
"""Compute capability of Volta."""
FIRST_WITH_NEW_TYPES = 8
"""Compute capability from which NVIDIA's chips have TF32 and bf16 (Ampere)."""
HALF_TYPES = {"f16", "bf16"}
CONVOLUTION = "convolution"
"""Part of the names of all ops that run a convolution."""
SINGLE_OP = "float"
"""torch's name of FP32."""
MOSTLY_HALF = 0.8
"""Share of the time of GEMMs, convolutions and attention in half precision above which a model already runs in it."""


def on_cuda_cores(identity: KernelIdentity) -> bool:
    """Whether a kernel is a matmul or convolution without tensor cores that may be FP32, by its name."""
    return (
        identity.kernel_class in GEMM_CLASSES
        and identity.tensor_core is False
        and not identity.is_sparse
        and identity.dtype.a in {"f32", None}
        and identity.dtype.out in {"f32", None}
    )


def fp32_products(labelled: LabelledGraph) -> Bools:
    """Products and convolutions on CUDA cores that are known to be fp32: by the kernel's name, or by the types of the
    op around it where the name has none. What the op contradicts is not known."""
    named = labelled.kernels_where(lambda identity: identity.dtype.a == "f32")
    types = labelled.op_dtypes
    single = types.where(lambda text: _floating(text) == {SINGLE_OP})
    other = types.where(lambda text: bool(_floating(text)) and SINGLE_OP not in _floating(text))
    return labelled.kernels_where(on_cuda_cores) & (named | single) & ~other


def chosen_in_fp32(labelled: LabelledGraph) -> Bools:
    """Convolutions that cuDNN runs in FP32 although TF32 is allowed, as others in TF32 show: one setting is for all."""
    convolutions = labelled.under_op_where(lambda name: CONVOLUTION in name)
    single = convolutions & labelled.once(fp32_products)
    in_tf32 = convolutions & labelled.kernels_where(lambda identity: identity.dtype.a == "tf32")
    return single if in_tf32.any() else np.zeros_like(single)


@lru_cache(maxsize=10_000)
def _floating(dtypes: str) -> frozenset[str]:
    """The floating types among an op's recorded inputs."""
    return frozenset(recorded_types(dtypes)) & FLOATING


@lru_cache(maxsize=10_000)
def _first_floating(dtypes: str) -> str | None:
    """The type of an op's first floating input; attention in half precision keeps its sums in FP32."""
    return next((name for name in recorded_types(dtypes) if name in FLOATING), None)


def mostly_half(labelled: LabelledGraph) -> bool:
    """Whether most of the time of GEMMs, convolutions and attention is in half precision already."""
    heavy = labelled.kernels(*GEMM_CLASSES, "attention") & labelled.in_steps
    half = labelled.kernels_where(lambda identity: identity.dtype.a in HALF_TYPES)
    half |= labelled.op_dtypes.where(lambda text: _first_floating(text) in HALF_OPS)
    time = labelled.graph.measured_end - labelled.graph.measured_start
    return float(time[heavy & half].sum()) >= MOSTLY_HALF * float(max(time[heavy].sum(), 1))


def in_double(identity: KernelIdentity) -> bool:
    """Whether a kernel computes in FP64."""
    return "f64" in {identity.dtype.a, identity.dtype.acc, identity.dtype.out}


def shorten_doubles(edit: GraphEdit, case: int) -> int:
    """Gives FP64 kernels the time of FP32, and matmuls that of TF32."""
    labelled = edit.labelled
    doubles = labelled.kernels_where(in_double) & labelled.in_steps & ~edit.gone
    matrix = doubles & labelled.kernels(*GEMM_CLASSES)
    for nodes, share in ((matrix, labelled.device.double_to_tf32), (doubles & ~matrix, shares.DOUBLE_MEMORY)):
        chosen = np.flatnonzero(nodes)
        edit.shorten(chosen, labelled.graph.duration[chosen] * share.at(case))
    return int(doubles.sum())


def has_tf32(labelled: LabelledGraph) -> bool:
    """Whether the chip is known to have TF32: NVIDIA's, from compute capability 8.0 on."""
    return platform_of(labelled.trace) == "cuda" and labelled.once(_nvidia_major) >= FIRST_WITH_NEW_TYPES


def has_bf16(labelled: LabelledGraph) -> bool:
    """Whether the chip is known to have bf16: NVIDIA's from 8.0 on, and AMD's Instinct."""
    return platform_of(labelled.trace) == "hip" or labelled.once(_nvidia_major) >= FIRST_WITH_NEW_TYPES


def has_only_fp16(labelled: LabelledGraph) -> bool:
    """Whether the chip's tensor cores are known to have fp16 and no bf16: Volta's, and those of the listed chips of
    Turing, whose relatives have slower ones or none."""
    device = labelled.device
    roofs = [device.roof] if device.roof else [peer for peer in device.peers if peer.chip.compute == VOLTA]
    return bool(roofs) and all(roof.compute("fp16", TENSOR) and not roof.compute("bf16", TENSOR) for roof in roofs)


def has_tensor_cores(labelled: LabelledGraph) -> bool:
    """Whether the chip may have NVIDIA's tensor cores: no AMD chip, and none known to be older than Volta."""
    return platform_of(labelled.trace) == "cuda" and labelled.once(_nvidia_major) not in range(
        1, FIRST_WITH_TENSOR_CORES
    )


def _nvidia_major(labelled: LabelledGraph) -> int:
    """The compute capability; where it is not recorded, the newest that a kernel's name proves, as kernels run on their
    own generation or later ones. 0 if unknown."""
    devices = labelled.trace.devices
    recorded = devices.compute_major[devices.compute_major != NONE]
    if len(recorded):
        return int(recorded[0])
    names = dict.fromkeys(devices.name[devices.device != NONE].tolist())
    chip = next((found for name in names if name and (found := find_device(name)) is not None), None)
    if chip is not None:
        return chip.compute[0]
    return max((sm // 10 for sm in map(sm_number, labelled.kernel_archs) if sm is not None), default=0)


def drop_transposes(edit: GraphEdit, products: Bools) -> None:
    """Convolutions on CUDA cores convert channels-last tensors and back; those on tensor cores do not."""
    labelled = edit.labelled
    turning = labelled.kernels_where(lambda identity: identity.op in {"nchw_to_nhwc", "nhwc_to_nchw"})
    first = labelled.kernels_where(lambda identity: identity.op == "nhwc_to_nchw")
    ops = np.intersect1d(labelled.op[products], labelled.op[first])
    edit.remove_work_only(np.flatnonzero(turning & np.isin(labelled.op, ops[ops != NONE])))


def convert(edit: GraphEdit, nodes: Bools, before: str, after: str, case: int) -> int:
    """Gives matmuls in one precision the time of another on this chip, at least the roofline time in that precision.

    A matmul runs in one type: where a fix before converted it too, the shorter of the two times stays."""
    chosen = np.flatnonzero(nodes)
    edit.unconverted[chosen] = np.fmax(edit.unconverted[chosen], edit.graph.duration[chosen])
    new = edit.labelled.device.converted_ns(edit.unconverted[chosen], before, after)
    edit.shorten(chosen, new * shares.PRECISION_SPREAD.at(case), edit.labelled.floor_ns(after)[chosen])
    return len(chosen)
