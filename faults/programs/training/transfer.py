"""Cause `transfer`: what a training run logs, fetched whole."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted


@planted("transfer", "reduce_before_copy", steps=4)
def gradients_fetched_for_their_norms(torch: Any, fix: str | None) -> Step:
    """A training step logs the norm of each of four gradients, computed from `gradient.cpu()`.

    Sixteen megabytes leave the GPU for each number. Computed where the gradients are, four numbers leave it.
    """
    nn = torch.nn
    torch.backends.cuda.matmul.allow_tf32 = True
    model = nn.Sequential(*(nn.Linear(2048, 2048, bias=False) for _ in range(4))).to("cuda")
    parameters = list(model.parameters())
    batch = torch.randn(4096, 2048, device="cuda")

    def step() -> list[float]:
        for parameter in parameters:
            parameter.grad = None
        model(batch).square().mean().backward()
        gradients = [parameter.grad for parameter in parameters]
        if fix:
            norms: list[float] = torch.stack([gradient.norm() for gradient in gradients]).tolist()
            return norms
        return [float(gradient.cpu().norm()) for gradient in gradients]  # planted

    return step
