"""Cause `memory`: memory is fetched and copied for nothing."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.sealed.parts import sizes


@planted("memory", "preallocate", steps=3)
def music_continued_with_a_cache_grown_by_cat(torch: Any, fix: str | None) -> Step:
    """A transformer carries on 64 pieces of music by three frames, and `torch.cat` adds each frame to its cache.

    Every layer copies the keys and values of all earlier frames, half a gigabyte, for one new frame. A cache with room
    for what is to come has only that frame written to it.
    """
    nn, functional = torch.nn, torch.nn.functional
    width, layers, heads, voices, codes, batch, heard, ahead = sizes(
        (1024, 6, 16, 4, 2048, 64, 2048, 3), (16, 1, 2, 2, 10, 2, 5, 2)
    )
    kind = {"device": "cuda", "dtype": torch.bfloat16}

    class Layer(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.LayerNorm(width, **kind), nn.LayerNorm(width, **kind)
            self.enter, self.leave = nn.Linear(width, 3 * width, **kind), nn.Linear(width, width, **kind)
            self.wide, self.narrow = nn.Linear(width, 4 * width, **kind), nn.Linear(4 * width, width, **kind)

        def forward(self, x: Any, cache: list[Any], length: int) -> tuple[Any, list[Any]]:
            query, *new = self.enter(self.first(x)).unflatten(-1, (3, heads, 1, width // heads)).unbind(1)
            if fix:
                for old, one in zip(cache, new, strict=True):
                    old[:, :, length : length + 1] = one
                known = [old[:, :, : length + 1] for old in cache]
            else:
                known = cache = [torch.cat(pair, 2) for pair in zip(cache, new, strict=True)]  # planted
            x = x + self.leave(functional.scaled_dot_product_attention(query, *known).flatten(1))
            return x + self.narrow(functional.gelu(self.wide(self.second(x)))), cache

    network = nn.ModuleList(Layer() for _ in range(layers)).requires_grad_(False)
    tables = torch.randn(voices, codes, width, **kind)
    room = ahead if fix else 0
    past = torch.randn(2 * layers, batch, heads, heard, width // heads, **kind)
    past = [functional.pad(part, (0, 0, 0, room)) for part in past]
    began = torch.randint(0, codes, (voices, batch), device="cuda")

    def step() -> Any:
        caches, chosen, total = [past[place : place + 2] for place in range(0, 2 * layers, 2)], began, 0.0
        with torch.inference_mode():
            for frame in range(ahead):
                x = torch.stack([table[code] for table, code in zip(tables, chosen, strict=True)]).sum(0)
                for place, layer in enumerate(network):
                    x, caches[place] = layer(x, caches[place], heard + frame)
                logits = x @ tables.transpose(1, 2)
                chosen = logits.argmax(-1)
                total = total + logits.float().std()
            return total

    return step
