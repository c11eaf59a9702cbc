"""Cause `memory`: blocks that are freed, that never fit, and features that are copied to be joined."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import weights


@planted("memory", "no_empty_cache")
def cache_emptied_between_requests(torch: Any, fix: str | None) -> Step:
    """A server answers three requests a step and calls `empty_cache` after each, to leave the memory as it was.

    Every block goes back to the driver, behind a wait for the GPU, and is asked for again by the next request. Kept,
    the blocks serve the next request as they are.
    """
    functional = torch.nn.functional
    width = 1024
    ups, downs = (
        weights(torch, 3, width, 4 * width, torch.bfloat16),
        weights(torch, 3, 4 * width, width, torch.bfloat16),
    )
    prompts = [torch.randn(length, width, device="cuda", dtype=torch.bfloat16) for length in (3072, 6144, 4608)]

    def answer(x: Any) -> Any:
        for up, down in zip(ups, downs, strict=True):
            x = x + functional.gelu(functional.layer_norm(x, (width,)) @ up) @ down
        return x[-1].clone()

    def step() -> Any:
        answers = []
        with torch.no_grad():
            for prompt in prompts:
                answers.append(answer(prompt))
                if not fix:
                    torch.cuda.empty_cache()  # planted
        return answers

    return step


@planted("memory", "preallocate")
def lengths_that_no_block_fits(torch: Any, fix: str | None) -> Step:
    """Batches of five lengths take turns near the memory limit, and the allocator may not split large blocks.

    `max_split_size_mb` was set against fragmentation; since then a block serves only the length that it was made for,
    and each step frees some and asks the driver for others. Buffers for the longest batch, cut to length, serve all.
    """
    megabyte, width = 1 << 20, 4096
    lengths = [24576 + 8192 * position for position in range(5)]
    (up,) = weights(torch, 1, 256, width, torch.bfloat16)
    batch = torch.randn(lengths[-1], 256, device="cuda", dtype=torch.bfloat16)
    torch.cuda.empty_cache()
    torch.cuda.memory._set_allocator_settings("max_split_size_mb:64")
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + 1300 * megabyte) / total)
    buffers = [torch.empty(lengths[-1], width, device="cuda", dtype=torch.bfloat16) for _ in range(2)] if fix else []
    count = [0]

    def step() -> Any:
        length = lengths[2 * count[0] % 5]
        count[0] += 1
        x = batch[:length]
        if fix:
            hidden, gate = (buffer[:length] for buffer in buffers)
            torch.mm(x, up, out=hidden)
            torch.sigmoid(hidden, out=gate)
        else:
            hidden = x @ up  # planted
            gate = hidden.sigmoid()  # planted
        hidden.mul_(gate)
        return hidden.amax(1)

    return step


@planted("memory", "preallocate")
def dense_connections_by_concatenation(torch: Any, fix: str | None) -> Step:
    """A point network gives each of 20 layers the features of all layers before it, joined with `torch.cat`.

    Every layer copies everything that is there to add 32 columns. A buffer as wide as the last layer's input takes each
    layer's columns where they belong.
    """
    functional = torch.nn.functional
    points, start, growth, depth = 131072, 64, 32, 20
    mixes = [weights(torch, 1, start + growth * layer, growth, torch.bfloat16)[0] for layer in range(depth)]
    cloud = torch.randn(points, start, device="cuda", dtype=torch.bfloat16)
    buffer = torch.empty(points, start + growth * depth, device="cuda", dtype=torch.bfloat16)

    def step() -> Any:
        if not fix:
            features = cloud
            for mix in mixes:
                features = torch.cat([features, functional.relu(features @ mix)], 1)  # planted
            return features
        buffer[:, :start] = cloud
        for mix in mixes:
            known = mix.shape[0]
            torch.relu_(torch.mm(buffer[:, :known], mix, out=buffer[:, known : known + growth]))
        return buffer

    return step
