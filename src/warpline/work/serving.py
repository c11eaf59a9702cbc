"""vLLM's small kernels: gated activations, rotary embedding, cache writes, quantisation, routing."""

from __future__ import annotations

from warpline.work.model import OpCall, Work, vector_steps
from warpline.work.registry import model
from warpline.work.shapes import total_bytes


@model(
    "_C::silu_and_mul",
    "_C::gelu_and_mul",
    "_C::gelu_tanh_and_mul",
    "_C::mul_and_silu",
    "_C::swigluoai_and_mul",
    "_C::silu_and_mul_quant",
)
def gated(call: OpCall) -> Work:
    """silu_and_mul(out, x): x holds the gate and the value side by side."""
    out, x = call.tensor(0), call.tensor(1)
    steps = vector_steps(6 * out.elements, x.dtype)
    return Work("elementwise", steps, total_bytes(call.all_tensors(1)), out.bytes)


@model("_C::rotary_embedding", "_C::batched_rotary_embedding")
def rotary(call: OpCall) -> Work:
    """rotary_embedding(positions, query, key, head size, table, …): query and key are rotated in place."""
    positions, query, key = call.tensor(0), call.tensor(1), call.maybe_tensor(2)
    turned = total_bytes((query, key))
    table = call.maybe_tensor(4)
    row = table.shape[1] * table.item_bytes if table is not None and len(table.shape) == 2 else 0
    steps = vector_steps(3 * turned // query.item_bytes, "fp32")
    return Work("rotary embedding", steps, positions.bytes + turned + positions.elements * row, turned)


@model(
    "_C_cache_ops::reshape_and_cache_flash",
    "_C_cache_ops::reshape_and_cache",
    "_C_cache_ops::concat_and_cache_mla",
    "vllm::reshape_and_cache",
)
def cache_write(call: OpCall) -> Work:
    """reshape_and_cache(key, value, key cache, value cache, slots, …): new tokens are written to the cache."""
    key, value = call.tensor(0), call.tensor(1)
    slots = next((tensor for tensor in call.all_tensors(2) if tensor.dtype == "int64"), None)
    cache = call.maybe_tensor(2)
    item = cache.item_bytes if cache is not None else key.item_bytes
    return Work("cache write", (), total_bytes((key, value, slots)), (key.elements + value.elements) * item)


@model(
    "_C::static_scaled_fp8_quant",
    "_C::dynamic_scaled_fp8_quant",
    "_C::dynamic_per_token_scaled_fp8_quant",
    "_C::static_scaled_int8_quant",
    "_C::dynamic_scaled_int8_quant",
    "_C::scaled_fp4_quant",
)
def quantise(call: OpCall) -> Work:
    """scaled_fp8_quant(out, x, scale)."""
    out, x = call.tensor(0), call.tensor(1)
    steps = vector_steps(3 * x.elements, "fp32")
    return Work("quantise", steps, x.bytes, out.bytes)


@model("_moe_C::topk_softmax", "_moe_C::grouped_topk")
def route(call: OpCall) -> Work:
    """topk_softmax(weights, ids, indices, gates): each token's best experts."""
    outputs, gates = call.all_tensors()[:3], call.all_tensors()[-1]
    steps = vector_steps(6 * gates.elements, "fp32")
    return Work("routing", steps, gates.bytes, total_bytes(outputs))


@model(
    "fbgemm::FloatToFP8RowwiseQuantized",
    "fbgemm::FP8RowwiseQuantizedToFloat",
    "fbgemm::FloatToHFP8Quantized",
    "fbgemm::HFP8QuantizedToFloat",
)
def fbgemm_convert(call: OpCall) -> Work:
    """FBGEMM's conversions between fp32 and eight bits."""
    x = call.tensor(0)
    to_narrow = x.item_bytes == 4
    written = x.elements if to_narrow else 4 * x.elements
    return Work("quantise", vector_steps(2 * x.elements, "fp32"), x.bytes, written)
