"""Networks that several programs share: a U-Net for diffusion, and a transformer of fused operations."""

from __future__ import annotations

from typing import Any


def diffusion_network(torch: Any, colours: int, width: int) -> Any:
    """A U-Net of three scales that is told the time. Call it with images and times between zero and one."""
    nn, functional = torch.nn, torch.nn.functional

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, inputs: int, outputs: int) -> None:
            super().__init__()
            self.first, self.second = (
                nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
                nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            )
            self.told, self.past = nn.Linear(width, outputs), nn.Conv2d(inputs, outputs, 1, bias=False)

        def forward(self, x: Any, told: Any) -> Any:
            y = functional.relu(self.first(x) + self.told(told)[..., None, None], inplace=True)
            return functional.relu(self.second(y) + self.past(x), inplace=True)

    class Network(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.time = nn.Sequential(nn.Linear(1, width), nn.SiLU(), nn.Linear(width, width))
            self.stem, self.head = nn.Conv2d(colours, width, 3, padding=1), nn.Conv2d(width, colours, 3, padding=1)
            self.down = nn.ModuleList((Block(width, width), Block(width, 2 * width)))
            self.middle = Block(2 * width, 4 * width)
            self.up = nn.ModuleList((Block(6 * width, 2 * width), Block(3 * width, width)))

        def forward(self, x: Any, time: Any) -> Any:
            told, x, kept = self.time(time.unsqueeze(-1)), self.stem(x), []
            for block in self.down:
                x = block(x, told)
                kept.append(x)
                x = functional.avg_pool2d(x, 2)
            x = self.middle(x, told)
            for block, other in zip(self.up, reversed(kept), strict=True):
                x = block(torch.cat((functional.interpolate(x, scale_factor=2), other), 1), told)
            return self.head(x)

    return Network()


def encoder(torch: Any, width: int, layers: int, heads: int) -> Any:
    """A transformer that sees the whole sequence."""
    nn = torch.nn
    layer = nn.TransformerEncoderLayer(
        width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
    )
    return nn.TransformerEncoder(layer, layers, nn.LayerNorm(width), enable_nested_tensor=False)
