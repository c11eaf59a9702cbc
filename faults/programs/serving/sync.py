"""Positions, rows and counts that make the CPU wait although nobody asked it to.

The cause is `sync`, or `dispatch` where free launches give more back by the stopwatch (`faults/other_fix.py`).
"""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import weights


@planted("sync", "remove_sync")
def cache_position_on_the_gpu(torch: Any, fix: str | None) -> Step:
    """A decoder keeps the position of the next token in a GPU tensor, and slices six layers' caches with it.

    A slice needs a number, so each one reads the position back, four times a layer, and the GPU goes idle each time.
    The position is known to the loop on the CPU, where it costs nothing.
    """
    functional = torch.nn.functional
    batch, heads, room, size = 16, 16, 2048, 128
    width, place = heads * size, 1999
    caches = [
        tuple(torch.randn(batch, heads, room, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        for _ in range(6)
    ]
    inward = weights(torch, 6, width, 3 * width, torch.bfloat16)
    outward = weights(torch, 6, width, width, torch.bfloat16)
    token = torch.randn(batch, width, device="cuda", dtype=torch.bfloat16)
    position = place if fix else torch.tensor(place, device="cuda")

    def step() -> Any:
        x = token
        for (keys, values), first, last in zip(caches, inward, outward, strict=True):
            query, key, value = (x @ first).view(batch, 3, heads, size).unbind(1)
            keys[:, :, position] = key  # planted
            values[:, :, position] = value  # planted
            past = keys[:, :, : position + 1], values[:, :, : position + 1]  # planted
            y = functional.scaled_dot_product_attention(query[:, :, None], *past)
            x = x + y.reshape(batch, width) @ last
        return x

    return step


@planted("dispatch", "remove_sync")
def active_requests_in_a_list(torch: Any, fix: str | None) -> Step:
    """A server indexes its states with a Python list of the requests that are not finished, five times a token.

    Each time the list becomes a tensor and is copied from ordinary memory, which waits for all that was launched
    before. As a tensor on the GPU, made anew only when a request ends, it is used without a wait.
    """
    requests, width = 512, 4096
    layers = weights(torch, 4, width, width, torch.bfloat16)
    table = torch.randn(64, width, device="cuda", dtype=torch.bfloat16)
    start = torch.randn(requests, width, device="cuda", dtype=torch.bfloat16)
    running = [index for index in range(requests) if index % 4]
    active = torch.tensor(running, device="cuda") if fix else running

    def step() -> Any:
        states = start.clone()
        positions = torch.zeros(requests, device="cuda", dtype=torch.long)
        for _ in range(8):
            x = states[active] + table[positions[active]]  # planted
            for weight in layers:
                x = x @ weight
            states[active] = x  # planted
            positions[active] += 1  # planted
        return states, positions

    return step


@planted("sync", "remove_sync")
def clusters_counted_with_bincount(torch: Any, fix: str | None) -> Step:
    """The cells of a search index are found by k-means, whose eight rounds count their members with `bincount`.

    It looks up the smallest and the largest number on the CPU before it counts, though both are known. Adding ones
    into zeros of the right size counts the same without waiting.
    """
    points, cells, width = 32768, 1024, 256
    exact = torch.nn.functional.normalize(torch.randn(points, width, device="cuda"))
    rounded = exact.bfloat16()
    start = exact[:cells].clone()
    ones = torch.ones(points, device="cuda", dtype=torch.long)

    def step() -> Any:
        centres = start
        for _ in range(8):
            nearest = (rounded @ centres.bfloat16().t()).argmax(-1)
            if fix:
                members = torch.zeros(cells, device="cuda", dtype=torch.long).scatter_add_(0, nearest, ones)
            else:
                members = torch.bincount(nearest, minlength=cells)  # planted
            sums = torch.zeros(cells, width, device="cuda").index_add_(0, nearest, exact)
            centres = sums / members.clamp(min=1)[:, None]
        return centres

    return step
