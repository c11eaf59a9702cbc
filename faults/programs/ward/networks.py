"""Networks that several programs use."""

from __future__ import annotations

from typing import Any

from faults.programs.sealed.parts import sizes


def on_gpu(torch: Any) -> Any:
    """Where to make large models, so that the GPU draws their weights: a context for the code that makes them."""
    return torch.device(sizes("cuda", "cpu"))


def encoder(torch: Any, width: int, layers: int, heads: int) -> Any:
    """A transformer that sees the whole sequence, with its norms first, in bfloat16."""
    kind = {"dropout": 0.0, "activation": "gelu", "batch_first": True, "norm_first": True}
    with on_gpu(torch):
        layer = torch.nn.TransformerEncoderLayer(width, heads, 4 * width, dtype=torch.bfloat16, **kind)
        return torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)


def scaled(torch: Any, model: Any, gain: float = 1.0) -> Any:
    """The model with weights that keep the size of what goes through its convolutions, as training leaves them."""
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, (torch.nn.Conv1d, torch.nn.Conv2d)):
                module.weight.normal_(0, gain * (2 / module.weight[0].numel()) ** 0.5)
    return model
