"""Cause `memory`: a cache emptied in the middle, a queue copied to move on, heads copied before attention."""

from __future__ import annotations

import itertools
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import weights


@planted("memory", "no_empty_cache")
def empty_cache_after_every_block(torch: Any, fix: str | None) -> Step:
    """A model of four blocks calls `torch.cuda.empty_cache()` after each, "to keep the peak down".

    The next block needs the same memory again, and gets it from the driver instead of the cache.
    """
    ups, downs = weights(torch, 4, 512, 8192, torch.bfloat16), weights(torch, 4, 8192, 512, torch.bfloat16)
    x = torch.randn(4096, 512, device="cuda", dtype=torch.bfloat16)

    def step() -> Any:
        y = x
        for up, down in zip(ups, downs, strict=True):
            y = torch.relu(y @ up) @ down
            if not fix:
                torch.cuda.empty_cache()  # planted
        return y

    return step


@planted("memory", "preallocate")
def queue_moved_by_concatenation(torch: Any, fix: str | None) -> Step:
    """Contrastive learning keeps half a million keys in a queue: `cat((queue[64:], keys))` in every step.

    All of it is copied to drop 64 keys and add 64. Overwriting the oldest in place gives the same set of keys.
    """
    keys, width, batch = 524_288, 512, 64
    queue = torch.randn(keys, width, device="cuda", dtype=torch.bfloat16)
    fresh = torch.randn(batch, width, device="cuda", dtype=torch.bfloat16)
    places = itertools.cycle(range(0, keys, batch))

    def moved() -> Any:
        nonlocal queue
        likeness = fresh @ queue.t()
        queue = torch.cat((queue[batch:], fresh))  # planted
        return likeness

    def in_place() -> Any:
        likeness = fresh @ queue.t()
        place = next(places)
        queue[place : place + batch].copy_(fresh)
        return likeness

    return in_place if fix else moved


@planted("memory", "drop_copies")
def heads_made_contiguous(torch: Any, fix: str | None) -> Step:
    """Queries, keys and values are cut from one projection, and each is made contiguous before attention.

    The attention kernel reads rows at any distance from each other, so the views would do.
    """
    batch, length, heads, width = 64, 512, 16, 64
    packed = torch.randn(batch, length, 3, heads, width, device="cuda", dtype=torch.bfloat16)
    (out,) = weights(torch, 1, heads * width, heads * width, torch.bfloat16)

    def step() -> Any:
        parts = [part.transpose(1, 2) for part in packed.unbind(2)]
        query, key, value = parts if fix else [part.contiguous() for part in parts]  # planted
        seen = torch.nn.functional.scaled_dot_product_attention(query, key, value)
        return seen.transpose(1, 2).reshape(batch, length, -1) @ out

    return step
