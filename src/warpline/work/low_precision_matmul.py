"""Matmuls of narrow types: fp8 and fp4 with scales, int8, grouped matmuls, and quantised weights."""

from __future__ import annotations

from math import prod

from warpline.work.matmul import product
from warpline.work.model import MATRIX, Flops, OpCall, Tensor, Unknowable, Work
from warpline.work.registry import model
from warpline.work.shapes import dense_bytes, total_bytes

FAMILY = "scaled matmul"
GROUPED = "grouped matmul"
_NARROW = {"fp8": "fp8", "fp4x2": "fp4", "int8": "int8", "uint8": "int8"}


def _unpacked(matrix: Tensor, dim: int) -> Tensor:
    """The shape of a matrix of packed fp4 pairs as single numbers, packed along `dim`."""
    if matrix.dtype != "fp4x2":
        return matrix
    shape = list(matrix.shape)
    shape[dim] *= 2
    return Tensor(tuple(shape), "fp4x2")


def _narrow_product(left: Tensor, right: Tensor, others: list[Tensor], out_dtype: str) -> Work:
    inner = product(_unpacked(left, -1), _unpacked(right, -2), None, out_dtype)
    dtype = _NARROW.get(left.dtype, left.dtype)
    flops = (Flops(inner.matrix_flops, dtype, MATRIX),)
    return Work(FAMILY, flops, total_bytes((left, right, *others)), inner.written_bytes)


@model("aten::_scaled_mm", "aten::_scaled_mm_v2")
def scaled_mm(call: OpCall) -> Work:
    """_scaled_mm(a, b, scale_a, scale_b, bias, scale_result, out_dtype, …): fp8 or fp4 operands."""
    left, right = call.tensor(0), call.tensor(1)
    out = next((call.dtype(position, "") for position in (6, 3, 8) if call.dtype(position, "")), "bf16")
    return _narrow_product(left, right, call.all_tensors(2), out)


@model("aten::_int_mm", "aten::_int_mm_out")
def int_mm(call: OpCall) -> Work:
    """_int_mm(a, b): int8 factors, int32 result."""
    return _narrow_product(call.tensor(0), call.tensor(1), [], "int32")


@model("_C::cutlass_scaled_mm", "_C::cutlass_scaled_mm_azp", "_C::cutlass_scaled_fp4_mm")
def cutlass_scaled_mm(call: OpCall) -> Work:
    """vLLM's cutlass_scaled_mm(out, a, b, scale_a, scale_b, bias)."""
    out, left, right = call.tensor(0), call.tensor(1), call.tensor(2)
    if left.dtype == "uint8":
        # fp4: two numbers per byte, and the second operand is stored by columns.
        rows, packed = left.shape
        steps = 2 * rows * packed * 2 * right.shape[0]
        return Work(FAMILY, (Flops(steps, "fp4", MATRIX),), total_bytes((left, right, *call.all_tensors(3))), out.bytes)
    return _narrow_product(left, right, call.all_tensors(3), out.dtype)


@model("aten::_grouped_mm", "aten::_scaled_grouped_mm", "aten::_scaled_grouped_mm_v2")
def grouped_mm(call: OpCall) -> Work:
    """One matmul for each group (expert): offsets divide the rows among them, and cost nothing.

    2-D by 3-D: every row uses one group's matrix. 3-D by 3-D: a batch. 2-D by 2-D: the inner dimension is divided, and
    each group has its own result.
    """
    left, right = call.tensor(0), call.tensor(1)
    dtype = _NARROW.get(left.dtype, left.dtype)
    ranks = (len(left.shape), len(right.shape))
    if ranks == (3, 3):
        steps = product(left, right).matrix_flops
        out = (*left.shape[:2], right.shape[2])
    elif ranks == (2, 3):
        steps = 2 * left.shape[0] * left.shape[1] * right.shape[2]
        out = (left.shape[0], right.shape[2])
    elif ranks == (3, 2):
        steps = 2 * left.shape[1] * left.shape[2] * right.shape[1]
        out = (left.shape[1], right.shape[1])
    elif ranks == (2, 2):
        offsets = next((tensor for tensor in call.all_tensors(2) if tensor.dtype in {"int32", "int64"}), None)
        groups = offsets.shape[0] if offsets is not None and len(offsets.shape) == 1 else 1
        steps = 2 * left.shape[0] * left.shape[1] * right.shape[1]
        out = (groups, left.shape[0], right.shape[1])
    else:
        raise Unknowable("grouped matmuls have operands of two or three dimensions")
    written = dense_bytes(out, left.dtype if left.dtype not in _NARROW else "bf16")
    return Work(GROUPED, (Flops(steps, dtype, MATRIX),), total_bytes((left, right)), written)


@model(
    "_C::gptq_marlin_gemm",
    "_C::marlin_gemm",
    "_C::machete_mm",
    "_C::awq_gemm",
    "_C::gptq_gemm",
    "_moe_C::marlin_gemm_moe",
    "_C::awq_marlin_gemm",
    "_C::fp8_marlin_gemm",
    "_C::allspark_w8a16_gemm",
)
def quantised_weight(call: OpCall) -> Work:
    """A matmul with a packed weight: its sizes are the three integers M, N, K among the arguments."""
    activations = call.tensor(0)
    if len(activations.shape) < 2:
        raise Unknowable("the activations are not a matrix")
    rows, inner = prod(activations.shape[:-1]), activations.shape[-1]
    numbers = [call.integer(position, -1) for position in range(len(call.arguments))]
    for m, n, k in zip(numbers, numbers[1:], numbers[2:], strict=False):
        if m == rows and k == inner and n > 0:
            flops = (Flops(2 * m * n * k, activations.dtype, MATRIX),)
            written = dense_bytes((m, n), activations.dtype)
            out_given = [tensor for tensor in call.all_tensors(1) if tensor.shape != (m, n)]
            return Work(FAMILY, flops, total_bytes((activations, *out_given)), written)
    raise Unknowable("the sizes of the packed matmul were not recorded")


@model("vllm::inplace_fused_experts", "vllm::outplace_fused_experts", "vllm::fused_experts")
def fused_experts(call: OpCall) -> Work:
    """fused_experts(hidden, w1, w2, weights, ids): each token uses the two matmuls of its top-k experts."""
    hidden, first, second, _, ids = (call.tensor(position) for position in range(5))
    if len(ids.shape) != 2 or len(first.shape) != 3 or len(second.shape) != 3:
        raise Unknowable("the experts' weights are not three-dimensional")
    pairs = prod(ids.shape)
    steps = 2 * pairs * (prod(first.shape[1:]) + prod(second.shape[1:]))
    experts = min(first.shape[0], pairs)
    share = experts / first.shape[0] if first.shape[0] else 0
    read = hidden.bytes + int(share * (first.bytes + second.bytes)) + ids.bytes
    return Work(
        "fused experts",
        (Flops(steps, hidden.dtype, MATRIX),),
        read,
        hidden.bytes,
        estimate="assumes that every possible expert is chosen",
    )
