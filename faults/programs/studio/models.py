"""Models that several cases train or run: a transformer, a residual MLP and a residual convolution network."""

from __future__ import annotations

from typing import Any


def transformer(torch: Any, width: int, heads: int, layers: int, *, causal: bool = False) -> Any:
    """Pre-norm blocks with fused attention, as most are written today; on the CPU, in float."""
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
            self.up, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)
            self.act = nn.GELU()

        def forward(self, x: Any) -> Any:
            batch, length, _ = x.shape
            heads_first = self.qkv(self.norm1(x)).view(batch, length, 3, heads, -1).permute(2, 0, 3, 1, 4)
            query, key, value = heads_first.unbind(0)
            seen = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=causal)
            x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(self.act(self.up(self.norm2(x))))

    return nn.Sequential(*(Block() for _ in range(layers)))


def residual_mlp(torch: Any, width: int, hidden: int, layers: int) -> Any:
    """Blocks of a norm and two linear layers around a residual; on the CPU, in float."""
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(width)
            self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)
            self.act = nn.GELU()

        def forward(self, x: Any) -> Any:
            return x + self.down(self.act(self.up(self.norm(x))))

    return nn.Sequential(*(Block() for _ in range(layers)))


def residual_network(torch: Any, widths: tuple[int, ...], classes: int) -> Any:
    """A stem and two basic blocks for each width, as a small ResNet has them; on the CPU, in float."""
    nn = torch.nn

    class Basic(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, before: int, after: int) -> None:
            super().__init__()
            stride = 1 if before == after else 2
            self.conv1 = nn.Conv2d(before, after, 3, stride=stride, padding=1, bias=False)
            self.conv2 = nn.Conv2d(after, after, 3, padding=1, bias=False)
            self.norm1, self.norm2 = nn.BatchNorm2d(after), nn.BatchNorm2d(after)
            self.act = nn.ReLU(inplace=True)
            self.shortcut = nn.Identity()
            if before != after:
                self.shortcut = nn.Conv2d(before, after, 1, stride=stride, bias=False)

        def forward(self, x: Any) -> Any:
            y = self.act(self.norm1(self.conv1(x)))
            return self.act(self.norm2(self.conv2(y)) + self.shortcut(x))

    first = widths[0]
    layers = [nn.Conv2d(3, first, 7, stride=4, padding=3, bias=False), nn.BatchNorm2d(first), nn.ReLU(inplace=True)]
    for before, after in zip((first, *widths), widths, strict=False):
        layers += [Basic(before, after), Basic(after, after)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], classes))
