"""The role of a module, a range, an op or a kernel in a network, by its name."""

from __future__ import annotations

import re
from functools import lru_cache

ATTENTION, MLP, NORM, EMBEDDING, HEAD = "attention", "MLP", "norm", "embedding", "head"
PROJECTIONS = "attention projections"
"""The matmuls before and after attention: query, key, value and output."""
LOSS, OPTIMIZER, RESIDUAL, COMMUNICATION, COPY, OTHER = (
    "loss",
    "optimizer",
    "residual",
    "communication",
    "copies",
    "other",
)
_NAMES = (
    (OPTIMIZER, r"optimi[sz]er|adam|\bsgd\b|zero_?grad|clip_?grad"),
    (LOSS, r"loss|cross_?entropy|nll"),
    (NORM, r"norm|(^|[._])ln(_?\w{1,2})?($|[._\d])"),
    (HEAD, r"lm_?head|classifier|logits|(^|[._])head($|[._\d])"),
    (PROJECTIONS, r"(^|[._])(qkv|q|k|v|o|out|query|key|value)_?proj|(^|[._])qkv"),
    (ATTENTION, r"attn|attention|sdpa|rotary|rope($|[._\d])|kv_?cache|(and|store)_cache"),
    (EMBEDDING, r"embed|(^|[._])w[tp]e($|[._\d])"),
    (MLP, r"mlp|ffn|feed_?forward|moe|expert|swiglu|silu|gelu|(^|[._])(gate|up|down|fc\d?)(_?proj)?($|[._\d])"),
    (RESIDUAL, r"residual"),
)
"""Words in the names of modules (of torch, transformers, timm, torchtune) and ranges; the first match counts."""
_OPS = (
    (OPTIMIZER, r"^Optimizer\.|^aten::(_fused_(adam|adamw|sgd|adagrad)_?|_foreach_(?!copy)\w+)$"),
    (LOSS, r"^aten::(cross_entropy|nll_loss|mse_loss|binary_cross_entropy|kl_div|smooth_l1|huber|ctc_loss|_ctc)\w*$"),
    (
        NORM,
        r"^aten::(native_)?(layer|batch|group|instance|rms)_norm\w*$|^aten::(cudnn|miopen)_batch_norm\w*|^aten::_fused_rms_norm",
    ),
    (
        ATTENTION,
        r"^aten::(_?scaled_dot_product|_flash_attention|_efficient_attention|_fused_sdp|_cudnn_attention)\w*$|^flash_attn",
    ),
    (EMBEDDING, r"^aten::(embedding|_embedding_bag)\w*$"),
)
"""Ops with one role, wherever they are called."""
_OF_TORCH = r"^(aten|prim|profiler|c10d|autograd|nccl|quantized|inductor)::"
"""Namespaces of torch; ops of others (`vllm::moe_forward`, `sgl_kernel::silu_and_mul`) are named as modules are."""
_CLASSES = {
    "attention": ATTENTION,
    "norm": NORM,
    "optimizer": OPTIMIZER,
    "moe": MLP,
    "comm": COMMUNICATION,
    "memcpy": COPY,
}


@lru_cache(maxsize=10_000)
def role_of_name(name: str) -> str:
    """The role of a module or range; empty if the name shows none."""
    return next((role for role, pattern in _NAMES if re.search(pattern, name, re.IGNORECASE)), "")


@lru_cache(maxsize=10_000)
def role_of_op(name: str) -> str:
    """The role of an op; empty for one that is used everywhere."""
    known = next((role for role, pattern in _OPS if re.search(pattern, name)), "")
    if known or "::" not in name or re.search(_OF_TORCH, name):
        return known
    return role_of_name(name.split("::", 1)[1])


def role_of_class(kernel_class: str) -> str:
    """The role of a kernel's class; empty for one that is used everywhere."""
    return _CLASSES.get(kernel_class, "")
