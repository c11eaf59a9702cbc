"""A transformer layer that several cases are made of."""

from __future__ import annotations

from typing import Any


def layer(torch: Any, width: int) -> Any:
    """The modules of a layer with its norms first, in bfloat16 on the GPU."""
    nn, on_gpu = torch.nn, {"device": "cuda", "dtype": torch.bfloat16}
    parts = {
        "before": nn.LayerNorm(width, **on_gpu),
        "qkv": nn.Linear(width, 3 * width, **on_gpu),
        "out": nn.Linear(width, width, **on_gpu),
        "between": nn.LayerNorm(width, **on_gpu),
        "up": nn.Linear(width, 4 * width, **on_gpu),
        "down": nn.Linear(4 * width, width, **on_gpu),
    }
    return nn.ModuleDict(parts)


def through(torch: Any, parts: Any, x: Any, heads: int) -> Any:
    """A batch of sequences through the layer."""
    functional = torch.nn.functional
    batch, length, width = x.shape
    qkv = parts["qkv"](parts["before"](x)).view(batch, length, 3, heads, width // heads)
    q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
    mixed = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, length, width)
    x = x + parts["out"](mixed)
    return x + parts["down"](functional.gelu(parts["up"](parts["between"](x))))
