"""PyTorch's scaled dot-product attention: flash, memory-efficient, cuDNN; forward and backward.

Forward: two matmuls over every (query, key) pair that the mask allows. Backward: five, one of which recomputes the
scores. A causal mask halves the pairs, and such kernels skip the masked ones; FlopCounterMode does not. Query heads may
share key heads (GQA): matmuls count query heads, bytes count the stored heads.
"""

from __future__ import annotations

from msgspec import Struct

from warpline.work.model import MATRIX, VECTOR, Flops, OpCall, Tensor, Unknowable, Work
from warpline.work.registry import model
from warpline.work.shapes import dense_bytes, total_bytes

FAMILY = "attention"
SOFTMAX_STEPS = 5
"""Per score: scale, subtract the maximum, exponential, add to the sum, rescale."""
VARIABLE_LENGTHS = "sequence lengths were not recorded: assumed equal"


class Heads(Struct, frozen=True):
    """The sizes of an attention, for any layout of its tensors."""

    batch: int
    heads: int
    queries: int
    keys: int
    width: int
    value_width: int

    def pairs(self, causal: str) -> int:
        """(query, key) pairs per head: all, or those below the diagonal.

        `top` aligns the diagonal with the first query and key (PyTorch), `bottom` with the last (FlashAttention).
        """
        if not causal:
            return self.queries * self.keys
        offset = self.keys - self.queries if causal == "bottom" else 0
        # Query i sees keys 0 … i + offset, of which there are between 0 and `keys`.
        first = max(0, -offset)
        full = max(first, min(self.queries, self.keys - offset))
        rising = sum_of_range(first + offset + 1, full + offset) if full > first else 0
        return rising + (self.queries - full) * self.keys


def sum_of_range(low: int, high: int) -> int:
    """low + … + high."""
    return (low + high) * (high - low + 1) // 2


def heads_first(query: Tensor, key: Tensor, value: Tensor) -> Heads:
    """Sizes of tensors laid out as batch, head, position, width."""
    batch, heads, queries, width = query.shape
    return Heads(batch, heads, queries, key.shape[2], width, value.shape[3])


def positions_first(query: Tensor, key: Tensor, value: Tensor) -> Heads:
    """Sizes of tensors laid out as batch, position, head, width."""
    batch, queries, heads, width = query.shape
    return Heads(batch, heads, queries, key.shape[1], width, value.shape[3])


def packed(query: Tensor, key: Tensor, value: Tensor, offsets: Tensor | None, longest: int) -> Heads:
    """Sizes of packed sequences of several lengths (total, head, width), assuming equal lengths.

    Equal lengths give the minimum number of pairs for this number of positions and sequences.
    """
    total, heads, width = query.shape
    sequences = offsets.shape[0] - 1 if offsets is not None and len(offsets.shape) == 1 else 0
    if sequences <= 0:
        if longest <= 0:
            raise Unknowable("neither the number nor the length of the sequences was recorded")
        sequences = max(1, -(-total // longest))
    queries, keys = max(1, total // sequences), max(1, key.shape[0] // sequences)
    return Heads(sequences, heads, queries, keys, width, value.shape[-1])


def forward_work(
    sizes: Heads, tensors: tuple[Tensor, ...], causal: str, *, statistics: bool = True, estimate: str = ""
) -> Work:
    """Forward: scores and weighted values. `tensors` are query, key, value and an optional bias."""
    query = tensors[0]
    pairs = sizes.batch * sizes.heads * sizes.pairs(causal)
    flops = (
        Flops(2 * pairs * (sizes.width + sizes.value_width), query.dtype, MATRIX),
        Flops(SOFTMAX_STEPS * pairs, "fp32", VECTOR),
    )
    rows = sizes.batch * sizes.heads * sizes.queries
    written = dense_bytes((rows, sizes.value_width), query.dtype) + (4 * rows if statistics else 0)
    return Work(FAMILY, flops, total_bytes(tensors), written, estimate=estimate)


def backward_work(sizes: Heads, tensors: tuple[Tensor, ...], causal: str, *, estimate: str = "") -> Work:
    """Backward. `tensors` are the gradient, query, key, value, output and, if given, the statistics."""
    query, key, value = tensors[1:4]
    pairs = sizes.batch * sizes.heads * sizes.pairs(causal)
    flops = (
        Flops(2 * pairs * (3 * sizes.width + 2 * sizes.value_width), query.dtype, MATRIX),
        Flops(2 * SOFTMAX_STEPS * pairs, "fp32", VECTOR),
    )
    written = sum(tensor.dense_bytes for tensor in (query, key, value))
    return Work(f"{FAMILY} backward", flops, total_bytes(tensors), written, estimate=estimate)


def _present(call: OpCall, *positions: int) -> tuple[Tensor, ...]:
    return tuple(tensor for position in positions if (tensor := call.maybe_tensor(position)) is not None)


def _forward(call: OpCall, causal: bool, bias: int | None = None, statistics: bool = True) -> Work:
    query, key, value = (call.tensor(position) for position in range(3))
    extra = _present(call, bias) if bias is not None else ()
    mask = "top" if causal else ""
    return forward_work(heads_first(query, key, value), (query, key, value, *extra), mask, statistics=statistics)


@model("aten::_scaled_dot_product_flash_attention", "aten::_scaled_dot_product_flash_attention_for_cpu")
def flash(call: OpCall) -> Work:
    """(query, key, value, dropout, causal, …)."""
    return _forward(call, call.flag(4))


@model("aten::_scaled_dot_product_efficient_attention", "aten::_scaled_dot_product_cudnn_attention")
def efficient(call: OpCall) -> Work:
    """(query, key, value, bias, statistics, dropout, causal, …)."""
    return _forward(call, call.flag(6), bias=3, statistics=call.flag(4))


@model("aten::_cudnn_attention_forward")
def cudnn(call: OpCall) -> Work:
    """(query, key, value, bias, offsets, offsets, longest, longest, statistics, dropout, causal, …)."""
    if call.maybe_tensor(4) is not None and len(call.tensor(0).shape) == 3:
        return _packed_forward(call, 4, 6, call.flag(10))
    return _forward(call, call.flag(10), bias=3, statistics=call.flag(8))


@model("aten::scaled_dot_product_attention", "aten::_scaled_dot_product_attention_math")
def functional(call: OpCall) -> Work:
    """(query, key, value, mask, dropout, causal, …)."""
    return _forward(call, call.flag(5), bias=3, statistics=False)


def _packed_forward(call: OpCall, offsets: int, longest: int, causal: bool) -> Work:
    query, key, value = (call.tensor(position) for position in range(3))
    sizes = packed(query, key, value, call.maybe_tensor(offsets), call.integer(longest, 0))
    return forward_work(sizes, (query, key, value), "bottom" if causal else "", estimate=VARIABLE_LENGTHS)


@model("aten::_flash_attention_forward")
def flash_inner(call: OpCall) -> Work:
    """(query, key, value, offsets, offsets, longest, longest, dropout, causal, …), positions before heads."""
    query, key, value = (call.tensor(position) for position in range(3))
    if len(query.shape) == 3:
        return _packed_forward(call, 3, 5, call.flag(8))
    return forward_work(positions_first(query, key, value), (query, key, value), "bottom" if call.flag(8) else "")


@model("aten::_efficient_attention_forward")
def efficient_inner(call: OpCall) -> Work:
    """(query, key, value, bias, offsets, offsets, longest, longest, dropout, mask kind, statistics, …)."""
    query, key, value = (call.tensor(position) for position in range(3))
    causal = {1: "top", 2: "bottom"}.get(call.integer(9, 0), "")
    sizes = positions_first(query, key, value)
    estimate = ""
    offsets = call.maybe_tensor(4)
    if offsets is not None and query.shape[0] == 1:
        flat = [Tensor(tensor.shape[1:], tensor.dtype) for tensor in (query, key, value)]
        sizes = packed(flat[0], flat[1], flat[2], offsets, call.integer(6, 0))
        estimate = VARIABLE_LENGTHS
    tensors = (query, key, value, *_present(call, 3))
    return forward_work(sizes, tensors, causal, statistics=call.flag(10), estimate=estimate)


def _backward(call: OpCall, causal: bool, extra: tuple[int, ...]) -> Work:
    grad, query, key, value = (call.tensor(position) for position in range(4))
    tensors = (grad, query, key, value, *_present(call, *extra))
    return backward_work(heads_first(query, key, value), tensors, "top" if causal else "")


@model("aten::_scaled_dot_product_flash_attention_backward")
def flash_backward(call: OpCall) -> Work:
    """(grad, query, key, value, out, statistics, offsets, offsets, longest, longest, dropout, causal, …)."""
    return _backward(call, call.flag(11), (4, 5))


@model("aten::_scaled_dot_product_efficient_attention_backward")
def efficient_backward(call: OpCall) -> Work:
    """(grad, query, key, value, bias, out, statistics, seed, offset, dropout, wanted, causal, …)."""
    return _backward(call, call.flag(11), (4, 5, 6))


@model("aten::_cudnn_attention_backward", "aten::_scaled_dot_product_cudnn_attention_backward")
def cudnn_backward(call: OpCall) -> Work:
    """(grad, query, key, value, out, statistics, seed, offset, bias, …, longest, longest, dropout, causal, scale)."""
    return _backward(call, call.flag(14), (4, 5, 8))


@model("aten::_flash_attention_backward")
def flash_inner_backward(call: OpCall) -> Work:
    """(grad, query, key, value, out, statistics, offsets, offsets, longest, longest, dropout, causal, …)."""
    return positions_backward(call, offsets=6, longest=8, causal=call.flag(11))


@model("aten::_efficient_attention_backward")
def efficient_inner_backward(call: OpCall) -> Work:
    """(grad, query, key, value, bias, out, offsets ×2, longest ×2, statistics, dropout, seed, offset, mask kind, …)."""
    grad, query, key, value = (call.tensor(position) for position in range(4))
    causal = {1: "top", 2: "bottom"}.get(call.integer(14, 0), "")
    tensors = (grad, query, key, value, *_present(call, 4, 5, 10))
    return backward_work(positions_first(query, key, value), tensors, causal)


def positions_backward(call: OpCall, offsets: int, longest: int, causal: bool) -> Work:
    """Backward of tensors with positions before heads, packed or not; output and statistics follow the values."""
    grad, query, key, value = (call.tensor(position) for position in range(4))
    tensors = (grad, query, key, value, *_present(call, 4, 5))
    mask = "bottom" if causal else ""
    if len(query.shape) == 3:
        sizes = packed(query, key, value, call.maybe_tensor(offsets), call.integer(longest, 0))
        return backward_work(sizes, tensors, mask, estimate=VARIABLE_LENGTHS)
    return backward_work(positions_first(query, key, value), tensors, mask)
