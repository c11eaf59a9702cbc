"""Attention outside PyTorch: the flash_attn package, FlashAttention-3, xFormers, and vLLM's paged kernels.

If keys and values are in a paged cache, the profile does not show how much of it each request uses. The work is then
that of the new tokens: a lower bound, marked as an estimate.
"""

from __future__ import annotations

from itertools import pairwise

from warpline.work.attention import (
    VARIABLE_LENGTHS,
    Heads,
    backward_work,
    forward_work,
    packed,
    positions_backward,
    positions_first,
)
from warpline.work.model import OpCall, Tensor, Unknowable, Work
from warpline.work.registry import model

PAGED = "the contents of the cache were not recorded: only new tokens are counted"
LONGEST = "lengths in the cache were not recorded: every request is assumed to be as long as the longest"


def _three(call: OpCall, first: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    return call.tensor(first), call.tensor(first + 1), call.tensor(first + 2)


@model("flash_attn::_flash_attn_forward", "flash_attn_3::fwd_dense")
def package_forward(call: OpCall) -> Work:
    """flash_attn(query, key, value, dropout, scale, causal, …)."""
    query, key, value = _three(call)
    return forward_work(positions_first(query, key, value), (query, key, value), "bottom" if call.flag(5) else "")


@model("flash_attn::_flash_attn_varlen_forward")
def package_packed_forward(call: OpCall) -> Work:
    """flash_attn(query, key, value, offsets, offsets, longest, longest, dropout, scale, causal, …)."""
    query, key, value = _three(call)
    sizes = packed(query, key, value, call.maybe_tensor(3), call.integer(5, 0))
    return forward_work(sizes, (query, key, value), "bottom" if call.flag(9) else "", estimate=VARIABLE_LENGTHS)


@model("flash_attn::_flash_attn_backward")
def package_backward(call: OpCall) -> Work:
    """flash_attn backward(grad, query, key, value, out, statistics, dq, dk, dv, dropout, scale, causal, …)."""
    return positions_backward(call, offsets=-1, longest=-1, causal=call.flag(11))


@model("flash_attn::_flash_attn_varlen_backward")
def package_packed_backward(call: OpCall) -> Work:
    """(grad, query, key, value, out, statistics, three gradients, offsets ×2, longest ×2, dropout, scale, causal)."""
    return positions_backward(call, offsets=9, longest=11, causal=call.flag(15))


@model("FlashAttnFunc", "FlashAttnVarlenFunc", "FlashAttnQKVPackedFunc", "flash_attn_3::fwd")
def autograd_function(call: OpCall) -> Work:
    """A Python autograd function: only its tensors are recorded, not whether it is causal."""
    tensors = call.all_tensors()
    estimate = "whether the mask is causal was not recorded: assumed full"
    if tensors and len(tensors[0].shape) == 5:
        batch, positions, _, heads, width = tensors[0].shape
        sizes = Heads(batch, heads, positions, positions, width, width)
        return forward_work(sizes, (tensors[0],), "", estimate=estimate)
    query, key, value = tensors[:3]
    if len(query.shape) == 3:
        sizes = packed(query, key, value, tensors[3] if len(tensors) > 3 else None, 0)
    else:
        sizes = positions_first(query, key, value)
    return forward_work(sizes, (query, key, value), "", estimate=estimate)


@model("xformers::efficient_attention_forward_cutlass", "xformers_flash::flash_fwd")
def xformers_forward(call: OpCall) -> Work:
    """(query, key, value, bias or offsets, …), positions before heads; grouped heads have a fifth dimension."""
    query, key, value = _three(call)
    if len(query.shape) == 5:
        batch, positions, groups, heads, width = query.shape
        sizes = Heads(batch, groups * heads, positions, key.shape[1], width, value.shape[-1])
    elif len(query.shape) == 3:
        sizes = packed(query, key, value, call.maybe_tensor(3), call.integer(5, 0))
        return forward_work(sizes, (query, key, value), "", estimate=VARIABLE_LENGTHS)
    else:
        sizes = positions_first(query, key, value)
    causal = {1: "top", 2: "bottom"}.get(call.integer(9, 0), "")
    return forward_work(sizes, (query, key, value), causal)


@model("xformers::efficient_attention_backward_cutlass")
def xformers_backward(call: OpCall) -> Work:
    """(grad, query, key, value, …)."""
    grad, query, key, value = (call.tensor(position) for position in range(4))
    return backward_work(positions_first(query, key, value), (grad, query, key, value), "")


@model("_vllm_fa2_C::varlen_fwd", "_vllm_fa3_C::fwd")
def vllm_flash(call: OpCall) -> Work:
    """FlashAttention on a paged cache: every request is assumed to have as many keys as the longest."""
    query, key, value = _three(call)
    offsets = next(
        (t for t in call.all_tensors(3) if t.dtype == "int32" and len(t.shape) == 1 and t.shape[0] > 1), None
    )
    numbers = [call.integer(position, -1) for position in range(3, len(call.arguments))]
    longest = next(((q, k) for q, k in pairwise(numbers) if q > 0 and k > 0), None)
    if offsets is None or longest is None or len(query.shape) != 3:
        raise Unknowable("the lengths of the requests were not recorded")
    requests, heads, width = offsets.shape[0] - 1, query.shape[1], query.shape[2]
    queries = max(1, query.shape[0] // requests)
    sizes = Heads(requests, heads, queries, longest[1], width, value.shape[-1])
    cached = requests * longest[1]
    per_position = key.shape[-2] * (key.shape[-1] * key.item_bytes + value.shape[-1] * value.item_bytes)
    work = forward_work(sizes, (query,), "bottom", estimate=LONGEST)
    return Work(work.model, work.flops, query.bytes + cached * per_position, work.written_bytes, estimate=work.estimate)


@model("vllm::unified_attention", "vllm::unified_attention_with_output", "vllm::attention")
def vllm_unified(call: OpCall) -> Work:
    """unified_attention(query, key, value, …): tokens of this step, flattened or by head."""
    query, key, value = _three(call)
    if len(query.shape) != 3:
        raise Unknowable("the number of heads was not recorded")
    tokens, heads, width = query.shape
    # One new token per request is the minimum of a step: each attends at least to itself.
    return forward_work(Heads(tokens, heads, 1, 1, width, value.shape[-1]), (query, key, value), "", estimate=PAGED)


@model("_C::paged_attention_v1", "_C::paged_attention_v2", "_rocm_C::paged_attention")
def paged(call: OpCall) -> Work:
    """paged_attention(out, …, query, key cache, value cache, heads, scale, tables, lengths, block, longest, …)."""
    query = next(
        (
            call.tensor(i)
            for i in range(1, 6)
            if (t := call.maybe_tensor(i)) is not None and len(t.shape) == 3 and t.dtype != "fp32"
        ),
        None,
    )
    cache = [tensor for tensor in call.all_tensors() if len(tensor.shape) in {4, 5}]
    longest = max((call.integer(i, 0) for i in range(6, len(call.arguments))), default=0)
    if query is None or len(cache) < 2 or longest <= 0:
        raise Unknowable("the cache or the lengths of the requests were not recorded")
    requests, heads, width = query.shape
    work = forward_work(Heads(requests, heads, 1, longest, width, width), (query,), "", estimate=LONGEST)
    read = query.bytes + 2 * requests * longest * cache[0].shape[1] * width * cache[0].item_bytes
    return Work(work.model, work.flops, read, work.written_bytes, estimate=LONGEST)
