"""A decoder like Llama: rotary positions, RMS norms and gated layers. The caller brings the attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Attention = Callable[[int, Any, Any, Any], Any]
"""Takes a layer's number and its queries, keys and values (batch, head, place, channel), and returns the mixture."""


def decoder(torch: Any, width: int, inner: int, layers: int, heads: int, vocabulary: int, length: int) -> Any:
    """The model on the GPU, in bfloat16 and for inference. Call it with tokens, their places and an Attention."""
    nn, functional = torch.nn, torch.nn.functional

    def rotated(x: Any, cosine: Any, sine: Any) -> Any:
        first, second = x.chunk(2, -1)
        return x * cosine + torch.cat((-second, first), -1) * sine

    class Layer(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number
            self.before, self.between = nn.RMSNorm(width), nn.RMSNorm(width)
            self.project, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
            self.up, self.down = nn.Linear(width, 2 * inner, bias=False), nn.Linear(inner, width, bias=False)

        def forward(self, x: Any, cosine: Any, sine: Any, attend: Attention) -> Any:
            q, k, v = self.project(self.before(x)).unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)
            q, k = rotated(q, cosine, sine), rotated(k, cosine, sine)
            x = x + self.out(attend(self.number, q, k, v).transpose(1, 2).flatten(2))
            gate, up = self.up(self.between(x)).chunk(2, -1)
            return x + self.down(functional.silu(gate) * up)

    class Decoder(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(vocabulary, width)
            self.layers = nn.ModuleList(Layer(number) for number in range(layers))
            self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, vocabulary, bias=False)
            channels = width // heads
            rates = 10000.0 ** (-torch.arange(0, channels, 2) / channels)
            angles = torch.outer(torch.arange(length), torch.cat((rates, rates)))
            self.register_buffer("cosine", angles.cos())
            self.register_buffer("sine", angles.sin())

        def forward(self, tokens: Any, places: Any, attend: Attention) -> Any:
            x = self.embed(tokens)
            cosine, sine = self.cosine[places].unsqueeze(-3), self.sine[places].unsqueeze(-3)
            for layer in self.layers:
                x = layer(x, cosine, sine, attend)
            return self.head(self.norm(x[:, -1]))

    return Decoder().to("cuda", torch.bfloat16).eval().requires_grad_(False)
