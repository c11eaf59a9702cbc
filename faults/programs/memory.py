"""Cause `memory`: allocator calls, copies on the device that nothing needs, and buffers that are grown anew."""

from __future__ import annotations

import itertools
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import weights


@planted("memory", "no_empty_cache")
def empty_cache_every_step(torch: Any, fix: str | None) -> Step:
    """`torch.cuda.empty_cache()` after every step, "to save memory".

    The blocks go back to the driver (which waits for the GPU) and are asked for again in the next step. The peak is
    the same without it.
    """
    layers = weights(torch, 6, 2048, 2048, torch.bfloat16)
    x = torch.randn(2048, 2048, device="cuda", dtype=torch.bfloat16)

    def step() -> None:
        kept = [x]
        for weight in layers:
            kept.append(kept[-1] @ weight)
        kept.clear()
        if not fix:
            torch.cuda.empty_cache()  # planted

    return step


@planted("memory", "preallocate")
def growing_kv_cache(torch: Any, fix: str | None) -> Step:
    """A decoder's cache of keys and values grows by `torch.cat`, one token a step.

    All of it is copied to add one row. A buffer with room to grow takes the row in place.
    """
    torch.backends.cuda.enable_cudnn_sdp(False)  # it plans anew for every length, which is another fault
    batch, heads, length, room, width = 8, 8, 8192, 256, 128
    start = torch.randn(2, batch, heads, length + room, width, device="cuda", dtype=torch.bfloat16)
    first = start[:, :, :, :length].contiguous()
    row = torch.randn(2, batch, heads, 1, width, device="cuda", dtype=torch.bfloat16)
    query = torch.randn(batch, heads, 1, width, device="cuda", dtype=torch.bfloat16)
    attention = torch.nn.functional.scaled_dot_product_attention
    positions = itertools.cycle(range(room))
    cache = first

    def grown() -> Any:
        nonlocal cache
        before = first if next(positions) == 0 else cache
        cache = torch.cat((before, row), 3)  # planted
        return attention(query, cache[0], cache[1])

    def in_place() -> Any:
        end = length + next(positions) + 1
        start[:, :, :, end - 1 : end].copy_(row)
        return attention(query, start[0, :, :, :end], start[1, :, :, :end])

    return in_place if fix else grown


@planted("memory", "preallocate")
def results_by_concatenation(torch: Any, fix: str | None) -> Step:
    """Twelve chunks of results are appended with `torch.cat`, so that the first is copied eleven times.

    Each matmul can write its part of one buffer.
    """
    (weight,) = weights(torch, 1, 1024, 4096, torch.bfloat16)
    chunks = torch.randn(12, 2048, 1024, device="cuda", dtype=torch.bfloat16).unbind(0)
    room = torch.empty(12, 2048, 4096, device="cuda", dtype=torch.bfloat16)

    def step() -> Any:
        if fix:
            for chunk, part in zip(chunks, room.unbind(0), strict=True):
                torch.mm(chunk, weight, out=part)
            return room
        results = chunks[0] @ weight
        for chunk in chunks[1:]:
            results = torch.cat((results, chunk @ weight))  # planted
        return results

    return step


@planted("memory", "preallocate")
def zeros_every_step(torch: Any, fix: str | None) -> Step:
    """A buffer of 512 MiB is made anew with `torch.zeros` in every step, and all of it is then overwritten.

    Kept from step to step it need not be filled, and the matmuls can write into it.
    """
    (weight,) = weights(torch, 1, 512, 8192, torch.bfloat16)
    chunks = torch.randn(8, 4096, 512, device="cuda", dtype=torch.bfloat16).unbind(0)
    kept = torch.empty(8, 4096, 8192, device="cuda", dtype=torch.bfloat16)

    def step() -> Any:
        room = kept if fix else torch.zeros(8, 4096, 8192, device="cuda", dtype=torch.bfloat16)  # planted
        for chunk, part in zip(chunks, room.unbind(0), strict=True):
            if fix:
                torch.mm(chunk, weight, out=part)
            else:
                part.copy_(chunk @ weight)  # planted
        return room

    return step


@planted("memory", "drop_copies")
def redundant_contiguous(torch: Any, fix: str | None) -> Step:
    """Every layer transposes its weight and asks for a contiguous copy of it, in every step.

    A matmul reads either layout; the view is enough.
    """
    layers = weights(torch, 4, 4096, 4096, torch.bfloat16)
    x = torch.randn(512, 4096, device="cuda", dtype=torch.bfloat16)

    def step() -> Any:
        y = x
        for weight in layers:
            turned = weight.t() if fix else weight.t().contiguous()  # planted
            y = y @ turned
        return y

    return step


@planted("memory", "drop_copies")
def defensive_clones(torch: Any, fix: str | None) -> Step:
    """Every layer works on a clone of its input, "so that nothing is overwritten".

    Nothing is: the layers only read.
    """
    layers = weights(torch, 4, 1024, 1024, torch.bfloat16)
    x = torch.randn(32768, 1024, device="cuda", dtype=torch.bfloat16)

    def step() -> Any:
        y = x
        for weight in layers:
            safe = y if fix else y.clone()  # planted
            y = safe @ weight
        return y

    return step
