"""A transformer and a training step that several programs use."""

from __future__ import annotations

from typing import Any


def transformer(torch: Any, width: int, layers: int, heads: int, *, causal: bool = False) -> Any:
    """A transformer with its norms first and fused attention, in bfloat16 on the GPU."""
    nn, functional = torch.nn, torch.nn.functional
    kind = {"device": "cuda", "dtype": torch.bfloat16}

    class Layer(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.LayerNorm(width, **kind), nn.LayerNorm(width, **kind)
            self.enter, self.leave = nn.Linear(width, 3 * width, **kind), nn.Linear(width, width, **kind)
            self.wide, self.narrow = nn.Linear(width, 4 * width, **kind), nn.Linear(4 * width, width, **kind)

        def forward(self, x: Any) -> Any:
            parts = self.enter(self.first(x)).unflatten(-1, (3, heads, width // heads))
            query, key, value = parts.permute(2, 0, 3, 1, 4)
            mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=causal)
            x = x + self.leave(mixed.transpose(1, 2).flatten(2))
            return x + self.narrow(functional.gelu(self.wide(self.second(x))))

    return nn.Sequential(*(Layer() for _ in range(layers)), nn.LayerNorm(width, **kind))


def learn(optimizer: Any, loss: Any) -> Any:
    """Trains on a loss, and returns it."""
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.detach()
