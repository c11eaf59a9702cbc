"""Cause `kernel`: weights unpacked in many passes, a stencil of copies, too few blocks, and too many bits."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import compiled, weights


@planted("kernel", "torch_compile")
def weights_unpacked_in_many_passes(torch: Any, fix: str | None) -> Step:
    """A prefill unpacks its 4-bit weights with seven kernels for each of four layers, and most of them in float32.

    What they write is many times larger than the weights and is read only once, by the next of them. Compiled, they
    are one kernel that reads the packed weights and writes what the matmul needs.
    """
    width, group = 6144, 128
    packed = [torch.randint(0, 256, (width, width // 2), device="cuda", dtype=torch.uint8) for _ in range(4)]
    scales = [torch.rand(width, width // group, 1, device="cuda") * 0.004 for _ in range(4)]
    prompt = torch.randn(512, width, device="cuda", dtype=torch.bfloat16)

    def unpack(pairs: Any, scale: Any) -> Any:
        digits = torch.stack((pairs & 15, pairs >> 4), -1).float() - 8.0  # planted
        return (digits.view(width, -1, group) * scale).bfloat16().view(width, width)  # planted

    unpacked = compiled(torch, unpack) if fix else unpack

    def step() -> Any:
        x = prompt
        for pairs, scale in zip(packed, scales, strict=True):
            x = x @ unpacked(pairs, scale)
        return x

    return step


@planted("kernel", "torch_compile")
def stencil_of_rolled_grids(torch: Any, fix: str | None) -> Step:
    """A reaction of two substances on a grid takes its neighbours with `torch.roll`, which copies the whole grid.

    Eight copies and some twenty passes over 64 MiB follow one another where one pass could do it all: compiled, each
    point's neighbours are read where they lie.
    """
    size = 4096
    first = 1.0 - torch.rand(size, size, device="cuda") * 0.1
    second = torch.rand(size, size, device="cuda") * 0.1

    def spread(field: Any) -> Any:
        sides = torch.roll(field, 1, 0) + torch.roll(field, -1, 0) + torch.roll(field, 1, 1)  # planted
        return sides + torch.roll(field, -1, 1) - 4.0 * field  # planted

    def react(u: Any, v: Any) -> Any:
        both = u * v * v
        return u + 0.16 * spread(u) - both + 0.035 * (1.0 - u), v + 0.08 * spread(v) + both - 0.1 * v  # planted

    reaction = compiled(torch, react) if fix else react

    def step() -> Any:
        u, v = first, second
        for _ in range(2):
            u, v = reaction(u, v)
        return u, v

    return step


@planted("kernel", "fill_gpu")
def long_histories_in_few_bags(torch: Any, fix: str | None) -> Step:
    """A recommender pools 4,096 items of each of 32 users with `embedding_bag`, which walks through a bag in order.

    So 32 bags keep a handful of multiprocessors waiting for memory, one row after another. Cut into 64 bags each, and
    the parts added up, the same rows are read by all of them at once.
    """
    functional = torch.nn.functional
    users, items, length, width = 32, 1 << 20, 4096, 64
    parts = 64 if fix else 1
    table = torch.randn(items, width, device="cuda")
    history = torch.randint(0, items, (users * length,), device="cuda")
    starts = torch.arange(0, users * length, length // parts, device="cuda")
    candidates = torch.randn(width, items, device="cuda", dtype=torch.bfloat16)

    def step() -> Any:
        pooled = functional.embedding_bag(history, table, starts, mode="sum")  # planted
        pooled = pooled.view(users, parts, width).sum(1) / length
        return (pooled.bfloat16() @ candidates).amax(-1)

    return step


@planted("kernel", "bf16", also=("drop_casts",))
def queries_normed_into_floats(torch: Any, fix: str | None) -> Step:
    """A video model normalises its queries and keys in float32, and the attention then runs in float32 as well.

    The values are cast too, only to match. No fast kernel takes float32; the norms may keep their precision if their
    results go back to bfloat16 before the attention.
    """
    functional = torch.nn.functional
    batch, tokens, heads, size = 2, 4096, 16, 64
    width = heads * size
    frames = torch.randn(batch, tokens, width, device="cuda", dtype=torch.bfloat16)
    inward = weights(torch, 2, width, 3 * width, torch.bfloat16)
    outward = weights(torch, 2, width, width, torch.bfloat16)
    kind = torch.bfloat16 if fix else torch.float32

    def step() -> Any:
        x = frames
        for first, last in zip(inward, outward, strict=True):
            parts = (x @ first).view(batch, tokens, 3, heads, size).transpose(1, 3).unbind(2)
            query, key = (functional.rms_norm(part.float(), (size,)).to(kind) for part in parts[:2])
            y = functional.scaled_dot_product_attention(query, key, parts[2].to(kind))  # planted
            x = x + y.to(torch.bfloat16).transpose(1, 2).reshape(batch, tokens, width) @ last
        return x

    return step
