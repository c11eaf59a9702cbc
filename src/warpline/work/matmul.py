"""Matmuls: mm, addmm, bmm, baddbmm, linear, matmul, einsum and similar.

A matmul of M×K with K×N takes 2·M·N·K operations; both operands are read once and the result is written once.
"""

from __future__ import annotations

from math import prod

from warpline.work.dtypes import promote
from warpline.work.model import MATRIX, Flops, OpCall, Tensor, Unknowable, Work
from warpline.work.registry import model
from warpline.work.shapes import broadcast, dense_bytes, total_bytes, typed

FAMILY = "matmul"


def product(left: Tensor, right: Tensor, added: Tensor | None = None, out_dtype: str = "") -> Work:
    """The work of `left @ right`, batched if they have more than two dimensions, with an optional addend."""
    if len(left.shape) < 2 or len(right.shape) < 2 or left.shape[-1] != right.shape[-2]:
        raise Unknowable("the operands do not match")
    batch = broadcast((left.shape[:-2], right.shape[:-2]))
    rows, inner, columns = left.shape[-2], left.shape[-1], right.shape[-1]
    dtype = promote((left.dtype, right.dtype))
    return Work(
        FAMILY,
        (Flops(2 * prod(batch) * rows * columns * inner, dtype, MATRIX),),
        read_bytes=total_bytes((left, right, added)),
        written_bytes=dense_bytes((*batch, rows, columns), out_dtype or dtype),
    )


@model("aten::mm", "aten::bmm", "aten::_sparse_semi_structured_mm")
def plain(call: OpCall) -> Work:
    """mm(a, b), bmm(a, b)."""
    return product(call.tensor(0), call.tensor(1))


@model("aten::addmm", "aten::baddbmm", "aten::_addmm_activation", "aten::_sparse_semi_structured_addmm")
def added(call: OpCall) -> Work:
    """addmm(addend, a, b): an addend multiplied by 0 is not read."""
    addend = None if call.text(3).strip() in {"0", "0.", "0.0"} else call.tensor(0)
    return product(call.tensor(1), call.tensor(2), addend)


@model("aten::addbmm")
def summed(call: OpCall) -> Work:
    """addbmm(addend, a, b): the batch is summed into one matrix."""
    left, right = call.tensor(1), call.tensor(2)
    work = product(left, right, call.tensor(0))
    return Work(FAMILY, work.flops, work.read_bytes, dense_bytes((left.shape[-2], right.shape[-1]), left.dtype))


@model("aten::linear", "aten::_linear", "aten::mkldnn_linear")
def linear(call: OpCall) -> Work:
    """linear(x, weight, bias): the weight is stored transposed."""
    x, weight = call.tensor(0), call.tensor(1)
    if len(weight.shape) != 2 or not x.shape:
        raise Unknowable("linear needs a matrix of weights")
    rows = Tensor((prod(x.shape[:-1]), x.shape[-1]), x.dtype)
    return product(rows, _transposed(weight), call.maybe_tensor(2))


@model("aten::mv", "aten::matmul", "aten::dot", "aten::vdot", "aten::inner")
def any_rank(call: OpCall) -> Work:
    """matmul(a, b) of any rank: a vector counts as one row on the left and one column on the right."""
    left, right = call.tensor(0), call.tensor(1)
    row, column = _as_row(left), _as_column(right)
    return product(row, column)


@model("aten::addmv")
def added_vector(call: OpCall) -> Work:
    """addmv(addend, matrix, vector)."""
    return product(call.tensor(1), _as_column(call.tensor(2)), call.tensor(0))


@model("aten::addr", "aten::ger", "aten::outer")
def outer(call: OpCall) -> Work:
    """An outer product of the last two vectors."""
    vectors = [tensor for tensor in call.all_tensors() if len(tensor.shape) == 1]
    if len(vectors) < 2:
        raise Unknowable("an outer product needs two vectors")
    left, right = vectors[:2]
    column = Tensor((left.shape[0], 1), left.dtype)
    addend = call.tensor(0) if call.name.startswith("aten::addr") else None
    return product(column, Tensor((1, right.shape[0]), right.dtype), addend)


@model("aten::einsum")
def einsum(call: OpCall) -> Work:
    """einsum("bij,bjk->bik", [a, b]): two operations for every combination of indices, for at most two operands."""
    equation = call.text(0).replace(" ", "")
    operands = typed(call.tensors(1), call)
    terms, _, result = equation.partition("->")
    names = terms.split(",")
    if "..." in equation or not result or len(names) != len(operands) or len(operands) > 2:
        raise Unknowable("only einsum of one or two operands with an explicit result is counted")
    sizes: dict[str, int] = {}
    for name, operand in zip(names, operands, strict=True):
        if len(name) != len(operand.shape):
            raise Unknowable("the equation does not match the operands")
        sizes.update(zip(name, operand.shape, strict=True))
    steps = prod(sizes.values()) * (2 if len(operands) == 2 else 1)
    dtype = promote(operand.dtype for operand in operands)
    written = dense_bytes([sizes.get(index, 1) for index in result], dtype)
    return Work(FAMILY, (Flops(steps, dtype, MATRIX),), total_bytes(operands), written)


def _transposed(matrix: Tensor) -> Tensor:
    strides = matrix.strides[::-1] if matrix.strides is not None else None
    return Tensor(matrix.shape[::-1], matrix.dtype, strides)


def _as_row(tensor: Tensor) -> Tensor:
    return Tensor((1, *tensor.shape), tensor.dtype) if len(tensor.shape) == 1 else tensor


def _as_column(tensor: Tensor) -> Tensor:
    return Tensor((*tensor.shape, 1), tensor.dtype) if len(tensor.shape) == 1 else tensor
