"""Cause `cold_start`: work that is done once, inside the steps that are measured."""

from __future__ import annotations

import itertools
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import compiled

from .models import residual_mlp


@planted("cold_start", "warm_up", stacks=False)
def shorter_last_batch_of_the_validation(torch: Any, fix: str | None) -> Step:
    """A compiled model is validated on five batches, and the last one is shorter, as `drop_last` is not set.

    The model was warmed up with a full batch. The shorter one is another shape, and the model is compiled again in
    the middle of the measurement. Warmed up with both, it is not.
    """
    nn = torch.nn
    model = nn.Sequential(residual_mlp(torch, 1024, 4096, 2), nn.Linear(1024, 1000)).to("cuda", torch.bfloat16).eval()
    fast = compiled(torch, model)
    rows = torch.randn(4 * 8192 + 5120, 1024, device="cuda", dtype=torch.bfloat16)
    labels = torch.randint(0, 1000, (4 * 8192 + 5120,), device="cuda")
    batches = list(zip(rows.split(8192), labels.split(8192), strict=True))
    loader = itertools.cycle(batches)

    def step() -> Any:
        with torch.no_grad():
            batch, truth = next(loader)
            scores = fast(batch)  # planted
            return (scores.argmax(-1) == truth).sum()

    with torch.no_grad():
        for batch, _ in batches if fix else batches[:1]:
            fast(batch)
    torch.cuda.synchronize()
    return step
