"""Cause `transfer`: batches that come from ordinary memory, and results that come back larger than they need be."""

from __future__ import annotations

import itertools
from typing import Any

from faults.programs.case import Step, planted

from .models import residual_network, transformer


@planted("transfer", "pin_memory")
def images_from_ordinary_memory(torch: Any, fix: str | None) -> Step:
    """A training loop moves each batch of images with a plain `.to("cuda")` out of memory that is not pinned.

    Forty megabytes go through the driver's own buffer at a fraction of the link's speed, and the CPU waits for it.
    A loader with `pin_memory` and a copy with `non_blocking` do the same at full speed, with the CPU free.
    """
    model = residual_network(torch, (64, 128), 100).to("cuda", memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, fused=True)
    loaded = [torch.randn(64, 3, 224, 224).contiguous(memory_format=torch.channels_last) for _ in range(4)]
    if fix:
        loaded = [images.pin_memory() for images in loaded]
    labels = torch.randint(0, 100, (64,), device="cuda")
    batches = itertools.cycle(loaded)

    def step() -> Any:
        images = next(batches)
        images = images.to("cuda", non_blocking=True) if fix else images.to("cuda")  # planted
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


@planted("transfer", "reduce_before_copy")
def first_token_taken_on_the_cpu(torch: Any, fix: str | None) -> Step:
    """An embedding service copies the states of all tokens to the CPU, and takes the first token's there.

    It is `hidden.cpu()[:, 0]` instead of `hidden[:, 0].cpu()`: two hundred and fifty-six times what is needed.
    """
    nn = torch.nn
    table = nn.Embedding(30000, 768).to("cuda", torch.bfloat16)
    model = nn.Sequential(transformer(torch, 768, 12, 3), nn.LayerNorm(768)).to("cuda", torch.bfloat16).eval()
    tokens = torch.randint(0, 30000, (32, 256), device="cuda")

    def step() -> Any:
        with torch.no_grad():
            hidden = model(table(tokens)).float()
            return hidden[:, 0].cpu() if fix else hidden.cpu()[:, 0]  # planted

    return step
