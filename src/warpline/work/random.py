"""Random numbers and dropout: numbers are generated in registers, so only results are written."""

from __future__ import annotations

from warpline.work.model import OpCall, Unknowable, Work, vector_steps
from warpline.work.registry import model
from warpline.work.shapes import dense_bytes, total_bytes

FAMILY = "random"
PHILOX_STEPS = 20
"""Per number: ten rounds of Philox4x32 generate four numbers, in about eighty integer steps (Salmon et al., 2011)."""


@model(
    "aten::uniform",
    "aten::normal",
    "aten::random",
    "aten::exponential",
    "aten::log_normal",
    "aten::geometric",
    "aten::cauchy",
    "aten::rand_like",
    "aten::randn_like",
    "aten::randint_like",
)
def generate(call: OpCall) -> Work:
    """uniform_(x, low, high): x is overwritten."""
    x = call.tensor(0)
    return Work(FAMILY, vector_steps(PHILOX_STEPS * x.elements, "fp32"), 0, x.dense_bytes)


@model("aten::bernoulli")
def bernoulli(call: OpCall) -> Work:
    """bernoulli_(x, p): probabilities may be a tensor."""
    x, chances = call.tensor(0), call.maybe_tensor(1)
    steps = vector_steps(PHILOX_STEPS * x.elements, "fp32")
    return Work(FAMILY, steps, total_bytes((chances,)), x.dense_bytes)


@model("aten::native_dropout", "aten::_fused_dropout", "aten::dropout", "aten::feature_dropout")
def dropout(call: OpCall) -> Work:
    """native_dropout(x, p, train): the result, and a mask of one byte per element."""
    x = call.tensor(0)
    steps = vector_steps((PHILOX_STEPS + 2) * x.elements, "fp32")
    return Work("dropout", steps, x.bytes, x.dense_bytes + dense_bytes(x.shape, "bool"))


@model("aten::native_dropout_backward", "aten::_masked_scale")
def dropout_backward(call: OpCall) -> Work:
    """native_dropout_backward(grad, mask, scale)."""
    grad, mask = call.tensor(0), call.tensor(1)
    steps = vector_steps(2 * grad.elements, grad.dtype)
    return Work("dropout backward", steps, total_bytes((grad, mask)), grad.dense_bytes)


@model("aten::randperm")
def permutation(call: OpCall) -> Work:
    """randperm(n): keys and values are sorted; the result must at least be written."""
    count = call.integer(0)
    if count < 0:
        raise Unknowable("the number of elements was not recorded")
    return Work(FAMILY, vector_steps(PHILOX_STEPS * count, "fp32"), 0, 8 * count)


@model("aten::multinomial")
def multinomial(call: OpCall) -> Work:
    """multinomial(weights, count, …): the weights are summed and searched."""
    weights = call.tensor(0)
    rows = weights.elements // max(1, weights.shape[-1])
    steps = vector_steps(3 * weights.elements, "fp32")
    return Work(FAMILY, steps, weights.bytes, 8 * rows * call.integer(1, 1))
