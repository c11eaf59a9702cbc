"""Matmuls whose rows do not start at multiples of 16 bytes."""

from __future__ import annotations

import numpy as np

from warpline.kernels import KernelIdentity
from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.patterns.precision import HALF_TYPES
from warpline.trace.arrays import Bools, combinations
from warpline.work import Tensor, call_from_kineto

UNITS = {"bf16": 8, "fp16": 8, "fp32": 4}
"""Elements to which the sizes of a matmul must be aligned for the fast kernels: 16 bytes (cuBLAS documentation)."""
MATMULS = [f"aten::{name}" for name in ("mm", "addmm", "bmm", "baddbmm", "matmul", "linear", "_addmm_activation")]
"""Ops whose recorded shapes are those of a matmul; those of a convolution are not."""


def misaligned(labelled: LabelledGraph) -> Bools:
    """GPU activity of ops with unaligned matrix rows; without shapes, kernels made for unaligned operands."""
    work, columns = labelled.work, (labelled.op_shapes, labelled.op_strides, labelled.op_dtypes)
    one_of_each, which = combinations(*(column.codes[work] for column in columns))
    texts = zip(*(column.texts[work[one_of_each]] for column in columns), strict=True)
    result = np.zeros(len(labelled.graph), bool)
    result[work] = np.array([_odd(*row) for row in texts], bool)[which]
    result &= labelled.op_name.equal(*MATMULS) & ~labelled.kernels_where(_takes_any_alignment_well)
    result |= labelled.kernels_where(_takes_single_elements) & ~labelled.op_shapes.where(bool)
    return result


def _takes_single_elements(identity: KernelIdentity) -> bool:
    """Whether the name of a matmul kernel says that it takes unaligned operands."""
    return identity.kernel_class == "gemm" and identity.alignment == 1 and identity.dtype.a in HALF_TYPES


def _takes_any_alignment_well(identity: KernelIdentity) -> bool:
    """CUDA cores load fp32 values one by one, so these kernels are slow for another reason than alignment."""
    return identity.tensor_core is False and identity.dtype.a == "f32"


def _odd(shapes: str, strides: str, dtypes: str) -> bool:
    """Whether the rows of an operand or of the result are not aligned. The rows of the result are as long as those of
    the last operand. The number of rows does not matter."""
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
