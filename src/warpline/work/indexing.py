"""Gathers and scatters: only the rows that are named travel, and the names travel too."""

from __future__ import annotations

from math import prod

from warpline.work.dtypes import arithmetic
from warpline.work.model import VECTOR, Flops, OpCall, Tensor, Unknowable, Work
from warpline.work.registry import model
from warpline.work.shapes import broadcast, dense_bytes, size_at, total_bytes

FAMILY = "index"
REPEATED_NAMES = "rows named twice are counted twice, though a cache may hold them"
_INDEX_BYTES = 8


def _gather(source: Tensor, out: tuple[int, ...], index_bytes: int) -> Work:
    """Elements named by an index, read and written once each."""
    moved = dense_bytes(out, source.dtype)
    return Work(FAMILY, (), moved + index_bytes, moved)


@model("aten::embedding")
def embedding(call: OpCall) -> Work:
    """embedding(weight, indices, …)."""
    weight, indices = call.tensor(0), call.tensor(1)
    return _gather(weight, (*indices.shape, *weight.shape[1:]), indices.bytes)


@model("aten::index_select")
def index_select(call: OpCall) -> Work:
    """index_select(x, dim, index)."""
    x, dim, index = call.tensor(0), call.integer(1), call.tensor(2)
    if not x.shape:
        raise Unknowable("the source has no dimensions")
    out = list(x.shape)
    out[dim] = index.elements
    return _gather(x, tuple(out), index.bytes)


@model("aten::gather", "aten::take_along_dim")
def gather(call: OpCall) -> Work:
    """gather(x, dim, index)."""
    index = call.tensor(2) if call.maybe_tensor(2) is not None else call.tensor(1)
    return _gather(call.tensor(0), index.shape, index.bytes)


@model("aten::take", "aten::masked_select")
def take(call: OpCall) -> Work:
    """take(x, index); masked_select(x, mask), of which how much is kept was not recorded."""
    x, index = call.tensor(0), call.tensor(1)
    if index.dtype == "bool":
        return Work(FAMILY, (), index.bytes, 0, estimate="how many elements the mask keeps was not recorded")
    return _gather(x, index.shape, index.bytes)


def _indexed(x: Tensor, indices: tuple[Tensor, ...]) -> tuple[tuple[int, ...], int]:
    """Shape of x[i, j, …] and the bytes of the indices. An empty shape is an index that was left out (`:`)."""
    given = [index for index in indices if index.shape]
    if not given or len(indices) > len(x.shape):
        raise Unknowable("the indices were not recorded")
    kept = [size for size, index in zip(x.shape, indices, strict=False) if not index.shape]
    common = broadcast(index.shape for index in given)
    if any(index.shape == x.shape and len(x.shape) > 1 for index in given):
        raise Unknowable("x[mask] depends on how much the mask keeps")
    index_bytes = sum(prod(index.shape) * _INDEX_BYTES for index in given)
    return (*common, *kept, *x.shape[len(indices):]), index_bytes


@model("aten::index", "aten::_unsafe_index")
def index(call: OpCall) -> Work:
    """index(x, [i, j, …])."""
    x = call.tensor(0)
    out, index_bytes = _indexed(x, call.tensors(1))
    return _gather(x, out, index_bytes)


@model("aten::index_put", "aten::_index_put_impl", "aten::_unsafe_index_put")
def index_put(call: OpCall) -> Work:
    """index_put(x, [i, j, …], values, accumulate)."""
    x, values = call.tensor(0), call.tensor(2)
    out, index_bytes = _indexed(x, call.tensors(1))
    target = dense_bytes(out, x.dtype)
    accumulated = target if call.flag(3) else 0
    steps = (Flops(prod(out), arithmetic(x.dtype), VECTOR),) if accumulated else ()
    return Work(FAMILY, steps, values.bytes + index_bytes + accumulated, target)


@model("aten::scatter", "aten::scatter_add", "aten::scatter_reduce")
def scatter(call: OpCall) -> Work:
    """scatter(x, dim, index, source or value): named elements of x, read too where something is added."""
    x, index, source = call.tensor(0), call.tensor(2), call.maybe_tensor(3)
    moved = index.elements * x.item_bytes
    adds = call.name.removesuffix("_") != "aten::scatter"
    copied = 0 if call.name.endswith("_") else x.bytes
    steps = (Flops(index.elements, arithmetic(x.dtype), VECTOR),) if adds else ()
    read = index.bytes + (index.elements * source.item_bytes if source else 0) + (moved if adds else 0) + copied
    return Work(FAMILY, steps, read, moved + copied)


@model("aten::index_add", "aten::index_copy", "aten::index_fill", "aten::index_reduce")
def index_into(call: OpCall) -> Work:
    """index_add(x, dim, index, source): one slice of x for each index."""
    x, dim, index, source = call.tensor(0), call.integer(1), call.tensor(2), call.maybe_tensor(3)
    moved = x.elements // max(1, size_at(x.shape, dim)) * index.elements * x.item_bytes
    adds = "add" in call.name or "reduce" in call.name
    copied = 0 if call.name.endswith("_") else x.bytes
    steps = (Flops(moved // x.item_bytes, arithmetic(x.dtype), VECTOR),) if adds else ()
    return Work(
        FAMILY, steps, total_bytes((index, source)) + (moved if adds else 0) + copied, moved + copied
    )


@model("aten::embedding_dense_backward")
def embedding_backward(call: OpCall) -> Work:
    """embedding_dense_backward(grad, indices, rows, …): gradients are added into the rows they name."""
    grad, indices = call.tensor(0), call.tensor(1)
    width = size_at(grad.shape, -1)
    rows = min(indices.elements, call.integer(2, indices.elements))
    steps = (Flops(grad.elements, arithmetic(grad.dtype), VECTOR),)
    return Work(
        f"{FAMILY} backward", steps, total_bytes((grad, indices)), rows * width * grad.item_bytes,
        estimate=REPEATED_NAMES if rows == indices.elements else "",
    )


@model("aten::_embedding_bag", "aten::_embedding_bag_forward_only", "aten::embedding_bag")
def embedding_bag(call: OpCall) -> Work:
    """_embedding_bag(weight, indices, offsets, …): rows are read and summed by bag."""
    weight, indices, offsets = call.tensor(0), call.tensor(1), call.tensor(2)
    row = weight.shape[1] * weight.item_bytes
    steps = (Flops(indices.elements * weight.shape[1], arithmetic(weight.dtype), VECTOR),)
    return Work(FAMILY, steps, indices.elements * row + total_bytes((indices, offsets)), offsets.elements * row)


@model("aten::nonzero")
def nonzero(call: OpCall) -> Work:
    """nonzero(x): how many are found was not recorded; reading x is the least."""
    return Work(FAMILY, (), call.tensor(0).bytes, 0, estimate="how many elements are found was not recorded")


@model("aten::repeat_interleave")
def repeat_interleave(call: OpCall) -> Work:
    """repeat_interleave(repeats): how much comes out was not recorded."""
    return Work(FAMILY, (), total_bytes(call.all_tensors()), 0, estimate="the size of the result was not recorded")


@model("aten::index_select_backward", "aten::slice_scatter", "aten::select_scatter", "aten::masked_scatter")
def scattered_copy(call: OpCall) -> Work:
    """slice_scatter(x, source, …): a copy of x with a part replaced."""
    x = call.tensor(0)
    return Work(FAMILY, (), x.bytes, dense_bytes(x.shape, x.dtype))
