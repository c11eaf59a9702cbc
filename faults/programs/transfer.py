"""Cause `transfer`: copies between the host and the device that are slow, many, too large or in the way."""

from __future__ import annotations

import itertools
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import weights


@planted("transfer", "pin_memory")
def pageable_batch(torch: Any, fix: str | None) -> Step:
    """A batch of 32 MiB is copied from ordinary memory in every step.

    The driver copies pageable memory through a buffer of its own, and the CPU waits. From pinned memory the copy
    engine reads directly and the CPU goes on.
    """
    hosts = [torch.randn(8192, 1024) for _ in range(3)]
    sources = itertools.cycle([host.pin_memory() for host in hosts] if fix else hosts)
    (weight,) = weights(torch, 1, 1024, 1024, torch.bfloat16)

    def step() -> Any:
        batch = next(sources).to("cuda", non_blocking=bool(fix))  # planted
        return batch.to(torch.bfloat16) @ weight

    return step


@planted("transfer", "pin_memory")
def results_to_pageable_memory(torch: Any, fix: str | None) -> Step:
    """Embeddings of 16 MiB go to the host in every step, into memory that was allocated just then.

    Pinned memory that is used again and again takes them at the full rate of the bus.
    """
    (weight,) = weights(torch, 1, 1024, 1024)
    x = torch.randn(4096, 1024, device="cuda")
    pinned = torch.empty(4096, 1024, pin_memory=True) if fix else None

    def step() -> Any:
        result = x @ weight
        if pinned is not None:
            return pinned.copy_(result, non_blocking=True)
        return result.cpu()  # planted

    return step


@planted("transfer", "reduce_before_copy")
def logits_to_host(torch: Any, fix: str | None) -> Step:
    """All logits are copied to the host, which then looks for the largest.

    The GPU finds it in microseconds, and one number a token is left to copy.
    """
    (head,) = weights(torch, 1, 1024, 32_000, torch.bfloat16)
    hidden = torch.randn(64, 1024, device="cuda", dtype=torch.bfloat16)

    def step() -> Any:
        logits = (hidden @ head).float()
        if fix:
            return logits.argmax(-1).cpu()
        return logits.cpu().argmax(-1)  # planted

    return step


@planted("transfer", "coalesce_copies")
def many_tiny_copies(torch: Any, fix: str | None) -> Step:
    """Forty-eight feature vectors of 4 KiB are copied to the GPU one by one.

    Each copy costs a call and a wait, whatever its size; packed on the host they are one copy.
    """
    features = [torch.randn(1024) for _ in range(48)]
    (weight,) = weights(torch, 1, 1024, 1024)

    def one_by_one() -> Any:
        return torch.stack([feature.to("cuda") for feature in features]) @ weight  # planted

    def packed() -> Any:
        return torch.stack(features).to("cuda") @ weight

    return packed if fix else one_by_one


@planted("transfer", "prefetch")
def copy_before_compute(torch: Any, fix: str | None) -> Step:
    """Each batch is copied (pinned, asynchronous) on the stream that then computes with it.

    The GPU computes nothing during the copy. The next batch's copy fits behind this batch's matmuls, on a stream
    of its own.
    """
    hosts = itertools.cycle([torch.randn(8192, 2048).pin_memory() for _ in range(2)])
    layers = weights(torch, 6, 2048, 2048, torch.bfloat16)
    buffers = [torch.empty(8192, 2048, device="cuda") for _ in range(2)]
    turns = itertools.cycle((0, 1))
    side = torch.cuda.Stream()
    free = [torch.cuda.Event(), torch.cuda.Event()]
    filled = [torch.cuda.Event(), torch.cuda.Event()]

    def compute(batch: Any) -> Any:
        y = batch.to(torch.bfloat16)
        for weight in layers:
            y = y @ weight
        return y

    def in_turn() -> Any:
        return compute(buffers[0].copy_(next(hosts), non_blocking=True))  # planted

    def fetch(turn: int) -> None:
        with torch.cuda.stream(side):
            side.wait_event(free[turn])
            buffers[turn].copy_(next(hosts), non_blocking=True)
            filled[turn].record(side)

    def ahead() -> Any:
        turn = next(turns)
        fetch(1 - turn)
        torch.cuda.current_stream().wait_event(filled[turn])
        result = compute(buffers[turn])
        free[turn].record()
        return result

    if not fix:
        return in_turn
    fetch(0)
    return ahead
