"""Cause `cold_start`: compiling that does not end with the first step."""

from __future__ import annotations

import random
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import compiled


@planted("cold_start", "warm_up", steps=3, stacks=False)
def annealed_weight_compiled_in(torch: Any, fix: str | None) -> Step:
    """The compiled loss of an autoencoder takes the annealed weight of one of its terms as a Python number.

    The number is part of what is compiled, so every step of the schedule compiles again, in the time that is
    measured. As a tensor it is an input like any other, and one step beforehand is enough.
    """
    begin = random.SystemRandom().random()  # another one each time, else the compiler would find its former result
    images, rebuilt, means, spreads = torch.randn(4, 8192, 1024, device="cuda", dtype=torch.bfloat16).unbind(0)
    count = 0

    def loss(image: Any, again: Any, mean: Any, spread: Any, weight: Any) -> Any:
        error = (image.float() - again.float()).square().sum(-1)
        divergence = (mean.float().square() + spread.float().exp() - spread.float() - 1.0).sum(-1)
        return (error + weight * divergence).mean()

    function = compiled(torch, loss)
    schedule = begin + torch.arange(1024, device="cuda") / 1024

    def step() -> Any:
        nonlocal count
        weight = schedule[count % 1024] if fix else begin + count / 1024
        count += 1
        return function(images, rebuilt, means, spreads, weight)  # planted

    if fix:
        step()
        count = 0
        torch.cuda.synchronize()
    return step
