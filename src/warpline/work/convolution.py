"""Convolutions, forward and both gradients, plain, grouped, dilated and transposed.

Each output point sums over the window and the input channels of its group: 2·N·(points)·K·(C/groups)·(window). A
transposed convolution does this for each input point instead. Padding is counted like data.
"""

from __future__ import annotations

from math import prod

from msgspec import Struct

from warpline.work.model import MATRIX, Flops, OpCall, Tensor, Unknowable, Work
from warpline.work.registry import model
from warpline.work.shapes import dense_bytes, total_bytes

FAMILY = "convolution"


class Geometry(Struct, frozen=True):
    """Stride, padding, dilation and groups of the window."""

    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    transposed: bool = False
    output_padding: tuple[int, ...] = (0,)
    groups: int = 1

    def output(self, x: Tensor, weight: Tensor) -> tuple[int, ...]:
        """The shape of the result."""
        if len(x.shape) != len(weight.shape) or len(x.shape) < 3:
            raise Unknowable("the input and the weight differ in rank")
        window = weight.shape[2:]
        rank = len(window)
        stride, padding, dilation, extra = (
            _spread(values, rank) for values in (self.stride, self.padding, self.dilation, self.output_padding)
        )
        if self.transposed:
            points = tuple(
                (size - 1) * stride[i] - 2 * padding[i] + dilation[i] * (window[i] - 1) + extra[i] + 1
                for i, size in enumerate(x.shape[2:])
            )
            return (x.shape[0], weight.shape[1] * self.groups, *points)
        points = tuple(
            (size + 2 * padding[i] - dilation[i] * (window[i] - 1) - 1) // stride[i] + 1
            for i, size in enumerate(x.shape[2:])
        )
        return (x.shape[0], weight.shape[0], *points)


def _spread(values: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """One number for all dimensions, or one for each."""
    if len(values) == rank:
        return values
    if len(values) == 1:
        return values * rank
    raise Unknowable("the window's geometry was not recorded")


def _steps(batch: int, points: tuple[int, ...], weight: Tensor) -> int:
    """2 · batch · points · all elements of the weight, whose second dimension is already that of one group."""
    return 2 * batch * prod(points) * weight.elements


def forward(x: Tensor, weight: Tensor, bias: Tensor | None, geometry: Geometry) -> Work:
    """The work of a convolution."""
    out = geometry.output(x, weight)
    if min(out) < 0:
        raise Unknowable("the window is larger than the input")
    points = x.shape[2:] if geometry.transposed else out[2:]
    steps = _steps(x.shape[0], points, weight)
    return Work(FAMILY, (Flops(steps, x.dtype, MATRIX),), total_bytes((x, weight, bias)), dense_bytes(out, x.dtype))


def _lists(call: OpCall, *positions: int) -> list[tuple[int, ...]]:
    found = [call.integers(position) for position in positions]
    if any(values is None for values in found):
        raise Unknowable(f"the geometry of {call.name} was not recorded")
    return [values for values in found if values is not None]


@model("aten::convolution", "aten::_convolution", "aten::convolution_overrideable")
def convolution(call: OpCall) -> Work:
    """convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups)."""
    stride, padding, dilation = _lists(call, 3, 4, 5)
    extra = call.integers(7) or (0,)
    geometry = Geometry(stride, padding, dilation, call.flag(6), extra, call.integer(8, 1))
    return forward(call.tensor(0), call.tensor(1), call.maybe_tensor(2), geometry)


@model("aten::conv1d", "aten::conv2d", "aten::conv3d")
def functional(call: OpCall) -> Work:
    """conv2d(x, weight, bias, stride, padding, dilation, groups)."""
    stride, padding, dilation = _lists(call, 3, 4, 5)
    geometry = Geometry(stride, padding, dilation, groups=call.integer(6, 1))
    return forward(call.tensor(0), call.tensor(1), call.maybe_tensor(2), geometry)


@model(
    "aten::cudnn_convolution",
    "aten::cudnn_convolution_relu",
    "aten::miopen_convolution",
    "aten::miopen_depthwise_convolution",
    "aten::mkldnn_convolution",
)
def library(call: OpCall) -> Work:
    """cudnn_convolution(x, weight, padding, stride, dilation, …); MIOpen's has a bias before the padding."""
    first = next((i for i in range(2, 6) if call.integers(i) is not None), None)
    if first is None:
        raise Unknowable(f"the geometry of {call.name} was not recorded")
    one, two, dilation = _lists(call, first, first + 1, first + 2)
    # cudnn_convolution_relu(x, weight, bias, stride, padding, …) has the two the other way round.
    stride, padding = (one, two) if call.name.endswith("_relu") else (two, one)
    bias = call.maybe_tensor(2) if first == 3 else None
    return forward(call.tensor(0), call.tensor(1), bias, Geometry(stride, padding, dilation))


@model("aten::cudnn_convolution_transpose", "aten::miopen_convolution_transpose")
def library_transposed(call: OpCall) -> Work:
    """cudnn_convolution_transpose(x, weight, padding, output_padding, stride, dilation, groups, …)."""
    first = next((i for i in range(2, 6) if call.integers(i) is not None), 2)
    padding, extra, stride, dilation = _lists(call, first, first + 1, first + 2, first + 3)
    geometry = Geometry(stride, padding, dilation, True, extra, call.integer(first + 4, 1))
    return forward(call.tensor(0), call.tensor(1), None, geometry)


@model("aten::_slow_conv2d_forward", "aten::thnn_conv2d", "aten::slow_conv3d_forward")
def direct(call: OpCall) -> Work:
    """_slow_conv2d_forward(x, weight, kernel_size, bias, stride, padding)."""
    stride, padding = _lists(call, 4, 5)
    return forward(call.tensor(0), call.tensor(1), call.maybe_tensor(3), Geometry(stride, padding, (1,)))


@model("aten::_conv_depthwise2d", "aten::conv_depthwise3d", "aten::slow_conv_dilated2d")
def depthwise(call: OpCall) -> Work:
    """_conv_depthwise2d(x, weight, kernel_size, bias, stride, padding, dilation)."""
    stride, padding, dilation = _lists(call, 4, 5, 6)
    return forward(call.tensor(0), call.tensor(1), call.maybe_tensor(3), Geometry(stride, padding, dilation))


@model("aten::convolution_backward")
def backward(call: OpCall) -> Work:
    """convolution_backward(grad, x, weight, …, transposed, …, groups, wanted): equal work for each gradient."""
    grad, x, weight = call.tensor(0), call.tensor(1), call.tensor(2)
    wanted = call.flags(10) or (True, True, False)
    points = x.shape[2:] if call.flag(7) else grad.shape[2:]
    each = _steps(x.shape[0] if x.shape else 0, points, weight)
    to_input, to_weight, to_bias = (*wanted, False, False, False)[:3]
    read = grad.bytes + (weight.bytes if to_input else 0) + (x.bytes if to_weight else 0)
    written = (
        (x.dense_bytes if to_input else 0)
        + (weight.dense_bytes if to_weight else 0)
        + (grad.shape[1] * grad.item_bytes if to_bias and len(grad.shape) > 1 else 0)
    )
    return Work(FAMILY, (Flops(each * (to_input + to_weight), grad.dtype, MATRIX),), read, written)


@model(
    "aten::cudnn_convolution_backward_input",
    "aten::cudnn_convolution_backward_weight",
    "aten::miopen_convolution_backward_input",
    "aten::miopen_convolution_backward_weight",
)
def one_gradient(call: OpCall) -> Work:
    """One gradient, before torch 1.11: (sizes, grad, weight or x, …); the sizes come from the enclosing op."""
    around = call.parent
    if around is None or "convolution_backward" not in around.name:
        raise Unknowable("the op around it, which has all shapes, was not recorded")
    x, grad, weight = around.tensor(0), around.tensor(1), around.tensor(2)
    steps = _steps(grad.shape[0], grad.shape[2:], weight)
    flops = (Flops(steps, grad.dtype, MATRIX),)
    if call.name.endswith("_input"):
        return Work(FAMILY, flops, total_bytes((grad, weight)), x.dense_bytes)
    return Work(FAMILY, flops, total_bytes((grad, x)), weight.dense_bytes)
