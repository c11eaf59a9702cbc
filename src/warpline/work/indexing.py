"""Gathers and scatters: only the indexed rows are moved, and the indices themselves."""

from __future__ import annotations

from itertools import takewhile
from math import prod

from warpline.work.model import OpCall, Tensor, Unknowable, Work, vector_steps
from warpline.work.registry import model
from warpline.work.shapes import broadcast, dense_bytes, size_at, total_bytes
from warpline.work.sort import radix_bytes

FAMILY = "index"
REPEATED_NAMES = "rows indexed twice are counted twice, although a cache may hold them"
_INDEX_BYTES = 8
SECTOR_BYTES = 32
"""The minimum transfer of memory and caches (CUDA C++ Best Practices Guide, coalesced access)."""


def _gather(source: Tensor, out: tuple[int, ...], index_bytes: int, run: int) -> Work:
    """Indexed elements, read and written once each, in contiguous runs of the given length."""
    moved = dense_bytes(out, source.dtype)
    return Work(FAMILY, (), moved + index_bytes, moved, extra_bytes=_beside(prod(out), run, source.item_bytes))


def _beside(elements: int, run: int, item_bytes: int) -> int:
    """Bytes of the sectors around the elements, if all runs are in different places."""
    run_bytes = max(1, run) * item_bytes
    return elements // max(1, run) * (-run_bytes % SECTOR_BYTES)


def _run(index: Tensor) -> int:
    """The number of contiguous elements that each index covers: those over which it was expanded."""
    strides = index.strides
    if strides is None or len(strides) != len(index.shape):
        return 1
    expanded = takewhile(lambda axis: axis[1] == 0, zip(reversed(index.shape), reversed(strides), strict=True))
    return prod(size for size, _ in expanded)


@model("aten::embedding")
def embedding(call: OpCall) -> Work:
    """embedding(weight, indices, …)."""
    weight, indices = call.tensor(0), call.tensor(1)
    return _gather(weight, (*indices.shape, *weight.shape[1:]), indices.bytes, prod(weight.shape[1:]))


@model("aten::index_select")
def index_select(call: OpCall) -> Work:
    """index_select(x, dim, index)."""
    x, dim, index = call.tensor(0), call.integer(1), call.tensor(2)
    if not x.shape:
        raise Unknowable("the source has no dimensions")
    out = list(x.shape)
    out[dim] = index.elements
    return _gather(x, tuple(out), index.bytes, prod(x.shape[dim % len(x.shape) + 1 :]))


@model("aten::gather", "aten::take_along_dim")
def gather(call: OpCall) -> Work:
    """gather(x, dim, index)."""
    index = call.tensor(2) if call.maybe_tensor(2) is not None else call.tensor(1)
    return _gather(call.tensor(0), index.shape, index.bytes, _run(index))


@model("aten::take", "aten::masked_select")
def take(call: OpCall) -> Work:
    """take(x, index); masked_select(x, mask), where the number of kept elements was not recorded."""
    x, index = call.tensor(0), call.tensor(1)
    if index.dtype == "bool":
        return Work(FAMILY, (), index.bytes, 0, estimate="the number of elements that the mask keeps was not recorded")
    return _gather(x, index.shape, index.bytes, 1)


def _indexed(x: Tensor, indices: tuple[Tensor, ...]) -> tuple[tuple[int, ...], int]:
    """The shape of x[i, j, …] and the bytes of the indices. An empty shape is an omitted index (`:`)."""
    given = [index for index in indices if index.shape]
    if not given or len(indices) > len(x.shape):
        raise Unknowable("the indices were not recorded")
    unindexed = [size for size, index in zip(x.shape, indices, strict=False) if not index.shape]
    common = broadcast(index.shape for index in given)
    if any(index.shape == x.shape and len(x.shape) > 1 for index in given):
        raise Unknowable("the size of x[mask] depends on the mask")
    index_bytes = sum(prod(index.shape) * _INDEX_BYTES for index in given)
    return (*common, *unindexed, *x.shape[len(indices) :]), index_bytes


@model("aten::index", "aten::_unsafe_index")
def index(call: OpCall) -> Work:
    """index(x, [i, j, …])."""
    x = call.tensor(0)
    indices = call.tensors(1)
    out, index_bytes = _indexed(x, indices)
    return _gather(x, out, index_bytes, prod(x.shape[len(indices) :]))


@model("aten::index_put", "aten::_index_put_impl", "aten::_unsafe_index_put")
def index_put(call: OpCall) -> Work:
    """index_put(x, [i, j, …], values, accumulate): accumulated values are sorted by index first.

    Profilers do not record the indices. A gradient, which is accumulated, has all indexed elements; other values may be
    one scalar for all of them.
    """
    x, values, adds = call.tensor(0), call.tensor(2), call.flag(3)
    if adds and not call.arguments[1].tensors:
        out, index_bytes = values.shape, 0
    else:
        out, index_bytes = _indexed(x, call.tensors(1))
    target = min(dense_bytes(out, x.dtype), x.bytes)
    if not adds:
        return Work(FAMILY, (), values.bytes + index_bytes, target)
    sizes = zip(out[:0:-1], x.shape[:0:-1], strict=False)
    row = max(1, prod(size for size, _ in takewhile(lambda pair: pair[0] == pair[1], sizes)))
    sorting = radix_bytes(prod(out) // row, _INDEX_BYTES, (x.elements // row).bit_length())
    steps = vector_steps(prod(out), x.dtype)
    return Work(FAMILY, steps, values.bytes + index_bytes + target, target, extra_bytes=sorting)


@model("aten::scatter", "aten::scatter_add", "aten::scatter_reduce")
def scatter(call: OpCall) -> Work:
    """scatter(x, dim, index, source or value): indexed elements of x, which are also read if values are added."""
    x, index, source = call.tensor(0), call.tensor(2), call.maybe_tensor(3)
    moved = min(index.elements * x.item_bytes, x.bytes)
    adds = call.name.removesuffix("_") != "aten::scatter"
    copied = 0 if call.name.endswith("_") else x.bytes
    steps = vector_steps(index.elements, x.dtype) if adds else ()
    read = index.bytes + (index.elements * source.item_bytes if source else 0) + (moved if adds else 0) + copied
    beside = 0 if adds else _beside(index.elements, _run(index), x.item_bytes)
    return Work(FAMILY, steps, read, moved + copied, additions=index.elements if adds else 0, extra_bytes=beside)


@model("aten::index_add", "aten::index_copy", "aten::index_fill", "aten::index_reduce")
def index_into(call: OpCall) -> Work:
    """index_add(x, dim, index, source): one slice of x for each index."""
    x, dim, index, source = call.tensor(0), call.integer(1), call.tensor(2), call.maybe_tensor(3)
    named = x.elements // max(1, size_at(x.shape, dim)) * index.elements
    moved = min(named * x.item_bytes, x.bytes)
    adds = "add" in call.name or "reduce" in call.name
    copied = 0 if call.name.endswith("_") else x.bytes
    steps = vector_steps(named, x.dtype) if adds else ()
    return Work(
        FAMILY,
        steps,
        total_bytes((index, source)) + (moved if adds else 0) + copied,
        moved + copied,
        additions=named if adds else 0,
    )


@model("aten::embedding_dense_backward")
def embedding_backward(call: OpCall) -> Work:
    """embedding_dense_backward(grad, indices, rows, …): gradients are added to the indexed rows."""
    grad, indices = call.tensor(0), call.tensor(1)
    width = size_at(grad.shape, -1)
    rows = min(indices.elements, call.integer(2, indices.elements))
    steps = vector_steps(grad.elements, grad.dtype)
    return Work(
        f"{FAMILY} backward",
        steps,
        total_bytes((grad, indices)),
        rows * width * grad.item_bytes,
        estimate=REPEATED_NAMES if rows == indices.elements else "",
        extra_bytes=radix_bytes(indices.elements, indices.item_bytes, 8 * indices.item_bytes),
    )


@model("aten::_embedding_bag", "aten::_embedding_bag_forward_only", "aten::embedding_bag")
def embedding_bag(call: OpCall) -> Work:
    """_embedding_bag(weight, indices, offsets, …): rows are read and summed by bag."""
    weight, indices, offsets = call.tensor(0), call.tensor(1), call.tensor(2)
    row = weight.shape[1] * weight.item_bytes
    steps = vector_steps(indices.elements * weight.shape[1], weight.dtype)
    return Work(FAMILY, steps, indices.elements * row + total_bytes((indices, offsets)), offsets.elements * row)


@model("aten::nonzero")
def nonzero(call: OpCall) -> Work:
    """nonzero(x): the number of results was not recorded; reading x is the minimum."""
    return Work(FAMILY, (), call.tensor(0).bytes, 0, estimate="the number of elements found was not recorded")


@model("aten::repeat_interleave")
def repeat_interleave(call: OpCall) -> Work:
    """repeat_interleave(repeats): the size of the result was not recorded."""
    return Work(FAMILY, (), total_bytes(call.all_tensors()), 0, estimate="the size of the result was not recorded")


@model("aten::index_select_backward", "aten::slice_scatter", "aten::select_scatter", "aten::masked_scatter")
def scattered_copy(call: OpCall) -> Work:
    """slice_scatter(x, source, …): a copy of x with a part replaced."""
    x = call.tensor(0)
    return Work(FAMILY, (), x.bytes, x.dense_bytes)
