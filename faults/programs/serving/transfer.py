"""Cause `transfer`: masks that say what two numbers could, and pages that are fetched one at a time."""

from __future__ import annotations

import itertools
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import weights


@planted("transfer", "reduce_before_copy", also=("prefetch",))
def masks_of_unequal_requests(torch: Any, fix: str | None) -> Step:
    """A server sends a full attention mask with each batch of requests of different lengths, 64 MiB for 32 requests.

    The batch waits while the mask crosses the bus. It says no more than the 32 lengths do: sent instead, they let the
    GPU write the mask itself. Sent a batch ahead, on a stream of its own, it would at least be waited for less.
    """
    functional = torch.nn.functional
    batch, tokens, heads, size = 32, 1024, 16, 64
    width = heads * size
    (inward,) = weights(torch, 1, width, 3 * width, torch.bfloat16)
    prompts = torch.randn(batch, tokens, width, device="cuda", dtype=torch.bfloat16)
    lengths = torch.arange(tokens - 16 * batch, tokens, 16).pin_memory()

    def mask_of(limits: Any, device: str) -> Any:
        index = torch.arange(tokens, device=device)
        hidden = (index[None, :] > index[:, None]) | (index >= limits[:, None, None])
        return torch.zeros(batch, 1, tokens, tokens, device=device, dtype=torch.bfloat16).masked_fill_(
            hidden[:, None], float("-inf")
        )

    mask = mask_of(lengths, "cpu").pin_memory()

    def attend(sent: Any) -> Any:
        query, key, value = (prompts @ inward).view(batch, tokens, 3, heads, size).transpose(1, 3).unbind(2)
        return functional.scaled_dot_product_attention(query, key, value, attn_mask=sent)

    def step() -> Any:
        if fix:
            return attend(mask_of(lengths.to("cuda", non_blocking=True), "cuda"))
        return attend(mask.to("cuda", non_blocking=True))  # planted

    if fix != "prefetch":
        return step
    side, numbers = torch.cuda.Stream(), itertools.count()
    slots = [mask.to("cuda") for _ in range(2)]

    def ahead() -> Any:
        here, number = torch.cuda.current_stream(), next(numbers)
        here.wait_stream(side)
        side.wait_stream(here)
        with torch.cuda.stream(side):
            slots[(number + 1) % 2].copy_(mask, non_blocking=True)
        return attend(slots[number % 2])

    return ahead


@planted("transfer", "coalesce_copies")
def pages_swapped_in_one_by_one(torch: Any, fix: str | None) -> Step:
    """A paged cache brings a preempted request back with one copy for each of its 160 pages of 32 KiB.

    A copy's launch takes ten times as long as its bytes. The pages lie side by side in host memory, so one copy brings
    them all, and one kernel puts them into their places.
    """
    pages, width = 160, 4096
    layers = weights(torch, 10, width, width, torch.bfloat16)
    tokens = torch.randn(64, width, device="cuda", dtype=torch.bfloat16)
    swapped = torch.randn(pages, 16384).bfloat16().pin_memory()
    pool = torch.zeros(4 * pages, 16384, device="cuda", dtype=torch.bfloat16)
    places = torch.randperm(4 * pages)[:pages]
    places_there, places_here = places.to("cuda"), places.tolist()

    def step() -> Any:
        if fix:
            pool.index_copy_(0, places_there, swapped.to("cuda", non_blocking=True))
        else:
            for page, place in zip(swapped, places_here, strict=True):
                pool[place].copy_(page, non_blocking=True)  # planted
        x = tokens + pool[:64, :width]
        for weight in layers:
            x = x @ weight
        return x

    return step
