"""Normalisation: layer, RMS, batch and group norm, forward and backward. The input is read once."""

from __future__ import annotations

from math import prod

from warpline.work.model import OpCall, Tensor, Work, vector_steps
from warpline.work.registry import model
from warpline.work.shapes import total_bytes

FAMILY = "norm"
FORWARD_STEPS = 7
"""Per element: two sums with a square, subtract, two multiplications and an addition."""
RMS_STEPS = 4
"""Per element: square, sum, two multiplications."""
BACKWARD_STEPS = 14
"""Per element: two sums of products for the statistics, two for weight and bias, and the gradient itself."""
STATISTIC_BYTES = 4
"""Means and deviations of half-precision inputs are stored in fp32."""


def _statistics(count: int, x: Tensor) -> int:
    return count * max(STATISTIC_BYTES, x.item_bytes)


@model("aten::native_layer_norm", "aten::layer_norm")
def layer(call: OpCall) -> Work:
    """native_layer_norm(x, shape, weight, bias, eps): mean and deviation of each row are saved for backward."""
    x = call.tensor(0)
    shape = call.integers(1) or x.shape[-1:]
    rows = x.elements // max(1, prod(shape))
    read = total_bytes((x, call.maybe_tensor(2), call.maybe_tensor(3)))
    written = x.dense_bytes + _statistics(2 * rows, x)
    return Work(FAMILY, vector_steps(FORWARD_STEPS * x.elements, x.dtype), read, written)


@model("aten::native_layer_norm_backward")
def layer_backward(call: OpCall) -> Work:
    """native_layer_norm_backward(grad, x, shape, mean, deviation, weight, bias, wanted)."""
    grad, x = call.tensor(0), call.tensor(1)
    wanted = (*(call.flags(7) or (True, True, True)), False, False, False)[:3]
    read = total_bytes((grad, x, call.maybe_tensor(3), call.maybe_tensor(4), call.maybe_tensor(5)))
    written = sum(
        tensor.dense_bytes
        for tensor, want in ((x, wanted[0]), (call.maybe_tensor(5), wanted[1]), (call.maybe_tensor(6), wanted[2]))
        if want and tensor is not None
    )
    return Work(f"{FAMILY} backward", vector_steps(BACKWARD_STEPS * x.elements, x.dtype), read, written)


@model("aten::_fused_rms_norm", "aten::rms_norm")
def rms(call: OpCall) -> Work:
    """_fused_rms_norm(x, shape, weight, eps)."""
    x = call.tensor(0)
    rows = x.elements // max(1, prod(call.integers(1) or x.shape[-1:]))
    written = x.dense_bytes + _statistics(rows, x)
    return Work(FAMILY, vector_steps(RMS_STEPS * x.elements, x.dtype), total_bytes((x, call.maybe_tensor(2))), written)


@model("aten::_fused_rms_norm_backward")
def rms_backward(call: OpCall) -> Work:
    """_fused_rms_norm_backward(grad, x, shape, deviation, weight, wanted)."""
    grad, x, weight = call.tensor(0), call.tensor(1), call.maybe_tensor(4)
    read = total_bytes((grad, x, call.maybe_tensor(3), weight))
    written = x.dense_bytes + (weight.dense_bytes if weight else 0)
    return Work(f"{FAMILY} backward", vector_steps(2 * RMS_STEPS * x.elements, x.dtype), read, written)


@model("aten::native_group_norm", "aten::group_norm")
def group(call: OpCall) -> Work:
    """native_group_norm(x, weight, bias, batch, channels, points, groups, eps)."""
    x = call.tensor(0)
    statistics = _statistics(2 * call.integer(3, 0) * call.integer(6, 0), x)
    read = total_bytes((x, call.maybe_tensor(1), call.maybe_tensor(2)))
    return Work(FAMILY, vector_steps(FORWARD_STEPS * x.elements, x.dtype), read, x.dense_bytes + statistics)


@model("aten::native_group_norm_backward")
def group_backward(call: OpCall) -> Work:
    """native_group_norm_backward(grad, x, mean, deviation, weight, …)."""
    grad, x, weight = call.tensor(0), call.tensor(1), call.maybe_tensor(4)
    read = total_bytes((grad, x, call.maybe_tensor(2), call.maybe_tensor(3), weight))
    written = x.dense_bytes + (2 * weight.dense_bytes if weight else 0)
    return Work(f"{FAMILY} backward", vector_steps(BACKWARD_STEPS * x.elements, x.dtype), read, written)


@model(
    "aten::native_batch_norm",
    "aten::cudnn_batch_norm",
    "aten::miopen_batch_norm",
    "aten::batch_norm",
    "aten::_native_batch_norm_legit",
    "aten::_native_batch_norm_legit_no_training",
    "aten::_batch_norm_with_update",
    "aten::_batch_norm_no_update",
    "aten::_native_batch_norm_legit_functional",
)
def batch(call: OpCall) -> Work:
    """native_batch_norm(x, weight, bias, running mean, running variance, …): statistics per channel."""
    x = call.tensor(0)
    channels = x.shape[1]
    read = total_bytes((x, *(call.maybe_tensor(position) for position in range(1, 5))))
    written = x.dense_bytes + _statistics(4 * channels, x)
    return Work(FAMILY, vector_steps(FORWARD_STEPS * x.elements, x.dtype), read, written)


@model(
    "aten::native_batch_norm_backward",
    "aten::cudnn_batch_norm_backward",
    "aten::miopen_batch_norm_backward",
    "aten::batch_norm_backward",
)
def batch_backward(call: OpCall) -> Work:
    """(grad, x, …): native puts the gradient first, cuDNN and MIOpen the input; both have the same shape."""
    first, second = call.tensor(0), call.tensor(1)
    channels = first.shape[1]
    read = total_bytes((first, second)) + _statistics(3 * channels, first)
    written = first.dense_bytes + _statistics(2 * channels, first)
    return Work(f"{FAMILY} backward", vector_steps(BACKWARD_STEPS * first.elements, first.dtype), read, written)


@model("aten::batch_norm_stats")
def batch_statistics(call: OpCall) -> Work:
    """batch_norm_stats(x, eps): mean and deviation of each channel (SyncBatchNorm)."""
    x = call.tensor(0)
    return Work(FAMILY, vector_steps(3 * x.elements, x.dtype), x.bytes, _statistics(2 * x.shape[1], x))


@model("aten::batch_norm_elemt")
def batch_apply(call: OpCall) -> Work:
    """batch_norm_elemt(x, weight, bias, mean, deviation, eps)."""
    x = call.tensor(0)
    read = total_bytes((x, *(call.maybe_tensor(position) for position in range(1, 5))))
    return Work(FAMILY, vector_steps(4 * x.elements, x.dtype), read, x.dense_bytes)


@model("_C::rms_norm", "_C::fused_add_rms_norm", "vllm_ir::rms_norm")
def serving_rms(call: OpCall) -> Work:
    """vLLM: rms_norm(out, x, weight, eps); fused_add_rms_norm(x, residual, weight, eps) writes both of its inputs."""
    first, second, weight = call.tensor(0), call.tensor(1), call.maybe_tensor(2)
    steps = vector_steps((RMS_STEPS + ("add" in call.name)) * first.elements, first.dtype)
    if "add" in call.name:
        return Work(FAMILY, steps, total_bytes((first, second, weight)), first.bytes + second.bytes)
    return Work(FAMILY, steps, total_bytes((second, weight)), first.bytes)
