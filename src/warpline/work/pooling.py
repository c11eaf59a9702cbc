"""Pooling: every input is read once and every output written once, even if windows overlap."""

from __future__ import annotations

from math import prod

from warpline.work.model import OpCall, Tensor, Unknowable, Work, vector_steps
from warpline.work.registry import model
from warpline.work.shapes import dense_bytes, resized, total_bytes

FAMILY = "pooling"


def _window(call: OpCall, rank: int) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Kernel size, stride (the kernel size by default) and padding."""
    kernel = call.integers(1)
    if not kernel:
        raise Unknowable("the window was not recorded")
    stride = call.integers(2) or kernel
    padding = call.integers(3) or (0,)
    wide = [values * rank if len(values) == 1 else values for values in (kernel, stride, padding)]
    return wide[0], wide[1], wide[2]


def _pooled(call: OpCall, x: Tensor, rank: int, dilation: tuple[int, ...] = (1,)) -> tuple[tuple[int, ...], int]:
    kernel, stride, padding = _window(call, rank)
    spread = dilation * rank if len(dilation) == 1 else dilation
    points = [
        (x.shape[len(x.shape) - rank + i] + 2 * padding[i] - spread[i] * (kernel[i] - 1) - 1) // stride[i] + 1
        for i in range(rank)
    ]
    return (*x.shape[: len(x.shape) - rank], *points), prod(kernel)


def _rank(name: str) -> int:
    return next((rank for rank in (1, 2, 3) if f"{rank}d" in name), 2)


@model("aten::max_pool2d_with_indices", "aten::max_pool3d_with_indices", "aten::max_pool1d_with_indices")
def max_pool(call: OpCall) -> Work:
    """max_pool2d_with_indices(x, kernel, stride, padding, dilation, …): values and their indices."""
    x = call.tensor(0)
    out, window = _pooled(call, x, _rank(call.name), call.integers(4) or (1,))
    steps = vector_steps(window * prod(out), x.dtype)
    return Work(FAMILY, steps, x.bytes, dense_bytes(out, x.dtype) + dense_bytes(out, "int64"))


@model(
    "aten::avg_pool1d",
    "aten::avg_pool2d",
    "aten::avg_pool3d",
    "aten::max_pool1d",
    "aten::max_pool2d",
    "aten::max_pool3d",
)
def average_pool(call: OpCall) -> Work:
    """avg_pool2d(x, kernel, stride, padding, …)."""
    x = call.tensor(0)
    out, window = _pooled(call, x, _rank(call.name))
    return Work(FAMILY, vector_steps(window * prod(out), x.dtype), x.bytes, dense_bytes(out, x.dtype))


@model(
    "aten::_adaptive_avg_pool2d", "aten::_adaptive_avg_pool3d", "aten::adaptive_avg_pool2d", "aten::adaptive_max_pool2d"
)
def adaptive_pool(call: OpCall) -> Work:
    """_adaptive_avg_pool2d(x, output size)."""
    x, out = call.tensor(0), resized(call)
    return Work(FAMILY, vector_steps(x.elements, x.dtype), x.bytes, dense_bytes(out, x.dtype))


@model(
    "aten::max_pool2d_with_indices_backward",
    "aten::max_pool3d_with_indices_backward",
    "aten::avg_pool2d_backward",
    "aten::avg_pool3d_backward",
    "aten::_adaptive_avg_pool2d_backward",
    "aten::_adaptive_avg_pool3d_backward",
    "aten::adaptive_max_pool2d_backward",
)
def backward(call: OpCall) -> Work:
    """pool_backward(grad, x, …, indices): the gradient has the input's shape; the input itself is not read."""
    grad, x = call.tensor(0), call.tensor(1)
    places = next((tensor for tensor in call.all_tensors(2) if tensor.dtype == "int64"), None)
    steps = vector_steps(grad.elements, grad.dtype)
    return Work(f"{FAMILY} backward", steps, total_bytes((grad, places)), dense_bytes(x.shape, grad.dtype))
