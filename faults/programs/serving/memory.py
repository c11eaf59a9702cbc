"""Cause `memory`: keys that are copied for every query head, and two streams whose pools drive each other out."""

from __future__ import annotations

import weakref
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import weights

GIB = 1 << 30


@planted("memory", "drop_copies")
def keys_copied_for_every_query_head(torch: Any, fix: str | None) -> Step:
    """A decoder whose query heads share keys in groups of four copies its cache until every head has its own.

    The copies are four times the cache, written and read again for every token. The four heads of a group can as well
    be four rows of queries against one head of keys, and nothing is copied.
    """
    functional = torch.nn.functional
    batch, shared, group, past, size = 32, 8, 4, 4096, 128
    width = shared * group * size
    caches = [
        tuple(torch.randn(batch, shared, past, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        for _ in range(2)
    ]
    inward = weights(torch, 2, width, width, torch.bfloat16)
    outward = weights(torch, 2, width, width, torch.bfloat16)
    tokens = torch.randn(batch, width, device="cuda", dtype=torch.bfloat16)

    def repeated(cache: Any) -> Any:
        wide = cache[:, :, None].expand(batch, shared, group, past, size)
        return wide.reshape(batch, shared * group, past, size)  # planted

    def step() -> Any:
        x = tokens
        for (keys, values), first, last in zip(caches, inward, outward, strict=True):
            query = x @ first
            if fix:
                y = functional.scaled_dot_product_attention(query.view(batch, shared, group, size), keys, values)
            else:
                rows = query.view(batch, shared * group, 1, size)
                y = functional.scaled_dot_product_attention(rows, repeated(keys), repeated(values))
            x = x + y.reshape(batch, width) @ last
        return x

    return step


@planted("memory", "preallocate")
def pools_that_crowd_each_other_out(torch: Any, fix: str | None) -> Step:
    """A server with a limited share of the GPU prefills and decodes on two streams, each with 1 GiB of scratch.

    The allocator keeps a pool for each stream, and there is no room for both, so each phase gives the other's back
    to the driver and asks for new memory. They never run at once: one block, taken once, serves both.
    """
    rows, depth, width = 131072, 64, 4096
    prompts, tokens = (torch.randn(rows, depth, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    read, write = weights(torch, 2, depth, width, torch.bfloat16)
    prefilling, decoding = torch.cuda.Stream(), torch.cuda.Stream()
    kept: list[Any] = []
    share = (torch.cuda.memory_reserved() + 3 * GIB // 2) / torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(share)

    def scratch() -> Any:
        if fix and kept:
            return kept[0]
        block = torch.empty(rows, width, device="cuda", dtype=torch.bfloat16)  # planted
        if fix:
            kept.append(block)
        return block

    def phase(inputs: Any, weight: Any) -> Any:
        return torch.mm(inputs, weight, out=scratch())[::1024].float().amax(0)

    def step() -> Any:
        prefilling.wait_stream(decoding)
        with torch.cuda.stream(prefilling):
            first = phase(prompts, read)
        decoding.wait_stream(prefilling)
        with torch.cuda.stream(decoding):
            return first + phase(tokens, write)

    # the limit is the whole process's, which may have other steps to run
    weakref.finalize(step, torch.cuda.set_per_process_memory_fraction, 1.0).atexit = False
    return step
