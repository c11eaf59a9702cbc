"""Cause `memory`: a cache that is emptied in the middle, a queue that is copied to move on, a repeat for an expand."""

from __future__ import annotations

import itertools
from typing import Any

from warpline.lab.faults.case import Step, planted
from warpline.lab.faults.parts import weights


@planted("memory", "no_empty_cache")
def empty_cache_after_every_block(torch: Any, cure: str | None) -> Step:
    """A model of four blocks calls `torch.cuda.empty_cache()` after each, "to keep the peak down".

    The next block needs the same memory again, and gets it from the driver instead of the cache.
    """
    ups, downs = weights(torch, 4, 2048, 8192, torch.bfloat16), weights(torch, 4, 8192, 2048, torch.bfloat16)
    x = torch.randn(2048, 2048, device="cuda", dtype=torch.bfloat16)

    def step() -> Any:
        y = x
        for up, down in zip(ups, downs, strict=True):
            y = torch.relu(y @ up) @ down
            if not cure:
                torch.cuda.empty_cache()  # planted
        return y

    return step


@planted("memory", "preallocate")
def queue_moved_by_concatenation(torch: Any, cure: str | None) -> Step:
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

    return in_place if cure else moved


@planted("memory", "drop_copies")
def repeat_for_an_expand(torch: Any, cure: str | None) -> Step:
    """Positions and a mask are repeated for every sample of the batch before they are used.

    `expand` gives the same values without writing them; the sum and the product read them where they are.
    """
    batch, length, width = 64, 1024, 1024
    x = torch.randn(batch, length, width, device="cuda", dtype=torch.bfloat16)
    positions = torch.randn(1, length, width, device="cuda", dtype=torch.bfloat16)
    mask = (torch.rand(1, length, width, device="cuda") < 0.9).to(torch.bfloat16)

    def step() -> Any:
        if cure:
            return (x + positions.expand(batch, -1, -1)) * mask.expand(batch, -1, -1)
        return (x + positions.repeat(batch, 1, 1)) * mask.repeat(batch, 1, 1)  # planted

    return step
