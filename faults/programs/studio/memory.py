"""Cause `memory`: tensors that are made anew where they could have stayed."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted


@planted("memory", "preallocate", steps=3)
def past_keys_joined_for_every_token(torch: Any, fix: str | None) -> Step:
    """A decoder keeps the keys and values of the past in a tuple, and joins those of each new token with `torch.cat`.

    So every layer copies its whole cache for every token. Written into memory that was set aside for the longest
    answer, a token costs its own few kilobytes.
    """
    nn = torch.nn
    batch, heads, size, prompt, tokens = 16, 16, 64, 4096, 4
    width = heads * size

    class Attention(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
            self.room = torch.randn(2, batch, heads, prompt + tokens, size, device="cuda", dtype=torch.bfloat16)

        def forward(self, x: Any, past: tuple[Any, Any], length: int) -> tuple[Any, tuple[Any, Any]]:
            query, key, value = self.qkv(x).view(batch, 1, 3, heads, size).permute(2, 0, 3, 1, 4).unbind(0)
            if fix:
                self.room[0, :, :, length : length + 1].copy_(key)
                self.room[1, :, :, length : length + 1].copy_(value)
                keys, values = self.room[:, :, :, : length + 1].unbind(0)
            else:
                keys = torch.cat((past[0], key), 2)  # planted
                values = torch.cat((past[1], value), 2)  # planted
            seen = nn.functional.scaled_dot_product_attention(query, keys, values)
            return self.out(seen.transpose(1, 2).reshape(batch, 1, width)), (keys, values)

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.attention = Attention()
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x: Any, past: tuple[Any, Any], length: int) -> tuple[Any, tuple[Any, Any]]:
            seen, past = self.attention(self.norm1(x), past, length)
            x = x + seen
            return x + self.mlp(self.norm2(x)), past

    blocks = nn.ModuleList(Block() for _ in range(3)).to("cuda", torch.bfloat16).eval()
    begun = [tuple(block.attention.room[:, :, :, :prompt].contiguous().unbind(0)) for block in blocks]
    first = torch.randn(batch, 1, width, device="cuda", dtype=torch.bfloat16)

    def step() -> Any:
        with torch.no_grad():
            pasts: list[Any] = list(begun)
            x = first
            for length in range(prompt, prompt + tokens):
                for layer, block in enumerate(blocks):
                    x, pasts[layer] = block(x, pasts[layer], length)
            return x

    return step
