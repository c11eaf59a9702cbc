"""Cause `transfer`: a batch of many fields, scores of every pixel, a copy that only says it is asynchronous."""

from __future__ import annotations

import itertools
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import weights


@planted("transfer", "coalesce_copies", steps=4)
def batch_field_by_field(torch: Any, fix: str | None) -> Step:
    """A batch is a dictionary of forty fields of 16 KiB, and each field is moved to the GPU by itself.

    Joined on the host they are one copy, and the model wanted them side by side anyway.
    """
    batch = {f"feature_{index}": torch.randn(256, 16) for index in range(40)}
    (up,), (down,) = weights(torch, 1, 640, 4096, torch.bfloat16), weights(torch, 1, 4096, 256, torch.bfloat16)

    def step() -> Any:
        if fix:
            features = torch.cat(list(batch.values()), 1).to("cuda")
        else:
            moved = {name: field.to("cuda") for name, field in batch.items()}  # planted
            features = torch.cat(list(moved.values()), 1)
        return torch.relu(features.to(torch.bfloat16) @ up) @ down

    return step


@planted("transfer", "reduce_before_copy", also=("pin_memory",))
def scores_of_every_pixel(torch: Any, fix: str | None) -> Step:
    """A segmentation model sends the scores of 21 classes for every pixel to the host, in float32: 22 MB a step.

    Only the best class is ever used: one byte a pixel, which the GPU finds at once.
    """
    functional = torch.nn.functional
    features = torch.randn(4, 256, 128, 128, device="cuda", dtype=torch.bfloat16)
    head = (torch.randn(21, 256, 1, 1, device="cuda") * 0.06).to(torch.bfloat16)
    pinned = torch.empty(4, 21, 256, 256, pin_memory=True) if fix == "pin_memory" else None

    def step() -> Any:
        scores = functional.interpolate(functional.conv2d(features, head), scale_factor=2, mode="bilinear").float()
        if pinned is not None:
            return pinned.copy_(scores, non_blocking=True)
        if fix:
            return scores.argmax(1).to(torch.uint8).cpu()
        return scores.cpu()  # planted

    return step


@planted("transfer", "pin_memory")
def non_blocking_from_pageable(torch: Any, fix: str | None) -> Step:
    """Images are copied with `non_blocking=True`, from memory that is not pinned.

    The flag does nothing for pageable memory: the CPU copies the batch into the driver's buffer piece by piece.
    """
    images = [torch.randn(96, 196, 768).to(torch.bfloat16) for _ in range(2)]
    sources = itertools.cycle([image.pin_memory() for image in images] if fix else images)
    (patches,) = weights(torch, 1, 768, 768, torch.bfloat16)
    (up,), (down,) = weights(torch, 1, 768, 3072, torch.bfloat16), weights(torch, 1, 3072, 768, torch.bfloat16)

    def step() -> Any:
        batch = next(sources).to("cuda", non_blocking=True)  # planted
        y = batch.view(-1, 768) @ patches
        return y + torch.relu(y @ up) @ down

    return step


@planted("transfer", "prefetch")
def weights_fetched_when_needed(torch: Any, fix: str | None) -> Step:
    """Four layers' weights live in pinned host memory, and each is copied just before its matmul.

    Copy and matmul take turns on one stream. The next layer's weights can come while this layer computes.
    """
    layers, tokens, hidden, inner = 4, 8192, 2048, 8192
    hosts = [weight.cpu().pin_memory() for weight in weights(torch, layers, hidden, inner, torch.bfloat16)]
    (down,) = weights(torch, 1, inner, hidden, torch.bfloat16)
    x = torch.randn(tokens, hidden, device="cuda", dtype=torch.bfloat16)
    buffers = [torch.empty(hidden, inner, device="cuda", dtype=torch.bfloat16) for _ in range(2)]
    side = torch.cuda.Stream()
    free, filled = ([torch.cuda.Event(), torch.cuda.Event()] for _ in range(2))

    def in_turn() -> Any:
        y = x
        for host in hosts:
            y = y @ buffers[0].copy_(host, non_blocking=True) @ down  # planted
        return y

    def fetch(layer: int) -> None:
        with torch.cuda.stream(side):
            side.wait_event(free[layer % 2])
            buffers[layer % 2].copy_(hosts[layer % layers], non_blocking=True)
            filled[layer % 2].record(side)

    def ahead() -> Any:
        y = x
        for layer in range(layers):
            fetch(layer + 1)
            torch.cuda.current_stream().wait_event(filled[layer % 2])
            y = y @ buffers[layer % 2] @ down
            free[layer % 2].record()
        return y

    if not fix:
        return in_turn
    fetch(0)
    return ahead
