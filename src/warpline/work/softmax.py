"""Softmax and losses on logits: one pass over the input, one over the output."""

from __future__ import annotations

from warpline.work.dtypes import as_fraction
from warpline.work.model import OpCall, Tensor, Unknowable, Work, vector_steps
from warpline.work.registry import model
from warpline.work.shapes import dense_bytes, total_bytes

FAMILY = "softmax"
FORWARD_STEPS = 5
"""Per element: maximum, subtract, exponential, sum, divide."""
BACKWARD_STEPS = 4
"""Per element: multiply, sum, subtract, multiply."""


@model("aten::_softmax", "aten::_log_softmax", "aten::_safe_softmax", "aten::_masked_softmax")
def forward(call: OpCall) -> Work:
    """_softmax(x, dim, to fp32)."""
    x = call.tensor(0)
    mask = call.maybe_tensor(1)
    out = "fp32" if call.flag(2) and call.name != "aten::_safe_softmax" else as_fraction(x.dtype)
    return Work(
        FAMILY, vector_steps(FORWARD_STEPS * x.elements, x.dtype), total_bytes((x, mask)), dense_bytes(x.shape, out)
    )


@model("aten::softmax", "aten::log_softmax")
def functional(call: OpCall) -> Work:
    """softmax(x, dim, dtype)."""
    x = call.tensor(0)
    out = call.dtype(2, as_fraction(x.dtype))
    return Work(FAMILY, vector_steps(FORWARD_STEPS * x.elements, x.dtype), x.bytes, dense_bytes(x.shape, out))


@model("aten::_softmax_backward_data", "aten::_log_softmax_backward_data", "aten::_masked_softmax_backward")
def backward(call: OpCall) -> Work:
    """_softmax_backward_data(grad, out, dim, type of the input)."""
    grad, out = call.tensor(0), call.tensor(1)
    written = dense_bytes(grad.shape, call.dtype(3, grad.dtype))
    steps = vector_steps(BACKWARD_STEPS * grad.elements, grad.dtype)
    return Work(f"{FAMILY} backward", steps, total_bytes((grad, out)), written)


def _rows(logits: Tensor, target: Tensor) -> int:
    if len(logits.shape) < 1:
        raise Unknowable("the logits have no dimensions")
    return target.elements


@model("aten::nll_loss_forward", "aten::nll_loss2d_forward", "aten::nll_loss")
def nll_forward(call: OpCall) -> Work:
    """nll_loss_forward(logits, target, weight, …): one logit per row is read."""
    logits, target = call.tensor(0), call.tensor(1)
    rows = _rows(logits, target)
    read = rows * logits.item_bytes + target.bytes + total_bytes((call.maybe_tensor(2),))
    return Work("loss", vector_steps(2 * rows, logits.dtype), read, 2 * logits.item_bytes)


@model("aten::nll_loss_backward", "aten::nll_loss2d_backward")
def nll_backward(call: OpCall) -> Work:
    """nll_loss_backward(grad, logits, target, …): one element per row; zeroing the rest is a separate op."""
    logits, target = call.tensor(1), call.tensor(2)
    rows = _rows(logits, target)
    return Work("loss backward", vector_steps(rows, logits.dtype), target.bytes, rows * logits.item_bytes)


@model("aten::cross_entropy_loss")
def cross_entropy(call: OpCall) -> Work:
    """cross_entropy_loss(logits, target, …), if it runs as one kernel."""
    logits, target = call.tensor(0), call.tensor(1)
    steps = vector_steps(FORWARD_STEPS * logits.elements, logits.dtype)
    return Work("loss", steps, total_bytes((logits, target)), logits.item_bytes)
