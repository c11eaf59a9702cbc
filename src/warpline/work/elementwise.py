"""Elementwise ops: every operand is read once as stored, and the result is written once.

Operands broadcast; an in-place op writes into its first operand; tensors beyond an op's operands are `out=`. Counts of
arithmetic steps are nominal: these ops are memory-bound on every chip.
"""

from __future__ import annotations

from math import prod

from msgspec import Struct

from warpline.work.dtypes import as_fraction, promote
from warpline.work.model import OpCall, Tensor, Unknowable, Work, vector_steps
from warpline.work.registry import model
from warpline.work.shapes import broadcast, dense_bytes, total_bytes

FAMILY = "elementwise"
SAME, FRACTION, TRUTH = "same", "fraction", "truth"


class Signature(Struct, frozen=True):
    """The number of tensor operands of an op, its steps per element, and its result type."""

    operands: int
    steps: int
    result: str = SAME


_TABLE: dict[Signature, str] = {
    Signature(1, 1): """
        abs absolute neg negative positive square relu sign sgn floor ceil round trunc frac bitwise_not clamp_min
        clamp_max threshold hardtanh relu6 conj_physical real imag view_as_real_copy""",
    Signature(1, 2): "leaky_relu nan_to_num hardshrink softshrink fix",
    Signature(1, 1, FRACTION): """
        exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin cos tan asin acos atan sinh cosh tanh asinh
        acosh atanh arcsin arccos arctan erf erfc erfinv lgamma digamma i0 sinc deg2rad rad2deg special_i1
        special_erfcx special_ndtri special_log_ndtr angle""",
    Signature(1, 3, FRACTION): "sigmoid hardsigmoid softplus elu selu celu log_sigmoid logit polygamma special_entr",
    Signature(1, 4, FRACTION): "silu swish mish hardswish",
    Signature(1, 8, FRACTION): "gelu",
    Signature(1, 1, TRUTH): "isnan isinf isfinite isposinf isneginf signbit logical_not",
    Signature(2, 1): """
        mul multiply maximum minimum fmax fmin bitwise_and bitwise_or bitwise_xor bitwise_left_shift
        bitwise_right_shift __and__ __or__ __xor__ __lshift__ __rshift__ __ilshift__ __irshift__ heaviside gcd lcm
        remainder fmod floor_divide copysign prelu nextafter complex""",
    Signature(2, 2): "add sub subtract rsub ldexp",
    Signature(2, 1, FRACTION): "div divide true_divide atan2 arctan2 hypot xlogy logaddexp2",
    Signature(2, 3, FRACTION): "logaddexp polar",
    Signature(2, 1, TRUTH): """
        eq ne lt le gt ge equal_elements not_equal less less_equal greater greater_equal logical_and logical_or
        logical_xor isclose isin""",
    Signature(3, 3): "lerp addcmul addcdiv",
    # Gradients: of an output and of a tensor saved by the forward pass.
    Signature(2, 1, "backward"): "threshold_backward hardtanh_backward relu_backward",
    Signature(2, 3, "backward"): """
        sigmoid_backward tanh_backward leaky_relu_backward elu_backward hardsigmoid_backward hardswish_backward
        softplus_backward logit_backward hardshrink_backward softshrink_backward""",
    Signature(2, 7, "backward"): "silu_backward mish_backward",
    Signature(2, 12, "backward"): "gelu_backward",
    Signature(3, 4, "backward"): "log_sigmoid_backward",
}
SIGNATURES = {f"aten::{name}": signature for signature, names in _TABLE.items() for name in names.split()}


def result_type(operands: list[Tensor], rule: str = SAME) -> str:
    """The type of the result: tensors take precedence over scalars, and a higher category over both."""
    dimensioned = [tensor.dtype for tensor in operands if not tensor.is_number]
    dtype = promote(dimensioned or (tensor.dtype for tensor in operands))
    if rule == TRUTH:
        return "bool"
    return as_fraction(dtype) if rule == FRACTION else dtype


def in_place(name: str) -> bool:
    """Whether an op writes into its first operand, as `aten::add_` does."""
    return name.endswith("_") and not name.endswith("__")


def elementwise(call: OpCall, operands: list[Tensor], steps: int, rule: str = SAME) -> Work:
    """The work of an op that computes one element from one of each operand."""
    if not operands:
        raise Unknowable(f"no tensor of {call.name} was recorded")
    if in_place(call.name):
        shape, dtype = operands[0].shape, operands[0].dtype
    else:
        shape, dtype = broadcast(tensor.shape for tensor in operands), result_type(operands, rule)
    computed = promote(tensor.dtype for tensor in operands if not tensor.is_number) or dtype
    flops = vector_steps(steps * prod(shape), computed)
    return Work(FAMILY, flops, total_bytes(operands), dense_bytes(shape, dtype))


@model(*SIGNATURES)
def by_signature(call: OpCall) -> Work:
    """One result for each element."""
    name = call.name.split(".", 1)[0]
    signature = SIGNATURES.get(name) or SIGNATURES[name.removesuffix("_")]
    operands = call.all_tensors()[: signature.operands]
    rule = SAME if signature.result == "backward" else signature.result
    return elementwise(call, operands, signature.steps, rule)


@model("aten::pow", "aten::float_power", "aten::__ipow__")
def power(call: OpCall) -> Work:
    """pow(base, exponent): either may be a tensor."""
    return elementwise(call, call.all_tensors()[:2], 1, FRACTION if "float" in call.name else SAME)


@model("aten::clamp", "aten::clip")
def clamp(call: OpCall) -> Work:
    """clamp(x, low, high), where the limits may be tensors."""
    return elementwise(call, call.all_tensors()[:3], 2)


@model("aten::where")
def where(call: OpCall) -> Work:
    """where(condition, a, b): the condition does not affect the type."""
    condition, left, right = call.tensor(0), call.maybe_tensor(1), call.maybe_tensor(2)
    choices = [tensor for tensor in (left, right) if tensor is not None]
    if not choices:
        raise Unknowable("where(condition) alone finds positions; their number was not recorded")
    shape = broadcast(tensor.shape for tensor in (condition, *choices))
    return Work(
        FAMILY,
        vector_steps(prod(shape), "fp32"),
        total_bytes((condition, *choices)),
        dense_bytes(shape, result_type(choices)),
    )


@model("aten::masked_fill")
def masked_fill(call: OpCall) -> Work:
    """masked_fill(x, mask, value); in place, only masked elements are written, and their number was not recorded."""
    x, mask = call.tensor(0), call.tensor(1)
    if in_place(call.name):
        return Work(FAMILY, (), mask.bytes, x.dense_bytes, estimate="assumes that every element is filled")
    return Work(FAMILY, (), total_bytes((x, mask)), dense_bytes(broadcast((x.shape, mask.shape)), x.dtype))


@model("aten::glu")
def glu(call: OpCall) -> Work:
    """glu(x, dim): the result has half as many elements."""
    x = call.tensor(0)
    half = x.elements // 2
    return Work(FAMILY, vector_steps(4 * half, x.dtype), x.bytes, half * x.item_bytes)


@model("aten::glu_backward")
def glu_backward(call: OpCall) -> Work:
    """glu_backward(grad, x, dim): the gradient is as large as the input."""
    grad, x = call.tensor(0), call.tensor(1)
    steps = vector_steps(7 * grad.elements, x.dtype)
    return Work(FAMILY, steps, total_bytes((grad, x)), x.dense_bytes)


_LOSSES = (
    "mse_loss",
    "smooth_l1_loss",
    "huber_loss",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "kl_div",
    "l1_loss",
    "soft_margin_loss",
)


@model(*(f"aten::{name}" for name in _LOSSES))
def loss(call: OpCall) -> Work:
    """A loss between two tensors: one value per element, reduced unless reduction is 0."""
    operands = call.all_tensors()[:2]
    work = elementwise(call, operands, 3)
    reduction = next((call.integer(i) for i in range(2, 4) if call.integer(i, -1) >= 0), 1)
    written = work.written_bytes if reduction == 0 else operands[0].item_bytes
    return Work("loss", work.flops, work.read_bytes, written)


@model(*(f"aten::{name}_backward" for name in _LOSSES))
def loss_backward(call: OpCall) -> Work:
    """The gradient of such a loss: (grad, x, target, …)."""
    grad, x, target = call.tensor(0), call.tensor(1), call.tensor(2)
    steps = vector_steps(3 * x.elements, x.dtype)
    return Work("loss backward", steps, total_bytes((grad, x, target)), x.dense_bytes)
