"""Cause `memory`: caches emptied out of caution, and buffers that grow by being copied."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import weights


@planted("memory", "no_empty_cache")
def validation_that_cleans_up_after_itself(torch: Any, fix: str | None) -> Step:
    """A validation calls `torch.cuda.empty_cache()` after each of four batches, lest memory run out.

    The activations' memory goes back to the driver, and the next batch asks for it again: every time the GPU is
    waited for, and memory is mapped and unmapped while it idles.
    """
    functional = torch.nn.functional
    layers = weights(torch, 6, 2048, 2048, torch.bfloat16)
    inputs = torch.randn(4, 4096, 2048, device="cuda", dtype=torch.bfloat16).unbind(0)

    def step() -> Any:
        total = torch.zeros((), device="cuda")
        for x in inputs:
            y = x
            for weight in layers:
                y = y + functional.gelu(y @ weight)
            total += (y - x).float().square().mean()
            del y
            if not fix:
                torch.cuda.empty_cache()  # planted
        return total

    return step


@planted("memory", "preallocate")
def trajectory_appended_state_by_state(torch: Any, fix: str | None) -> Step:
    """A rollout of 32 steps appends each state to its trajectory with `torch.cat`.

    Every append allocates a trajectory one state longer and copies all that came before. Into a tensor that was
    allocated for all the steps each state is written once.
    """
    horizon, environments, width = 32, 4096, 1024
    (dynamics,) = weights(torch, 1, width, width, torch.bfloat16)
    start = torch.randn(environments, width, device="cuda", dtype=torch.bfloat16)
    room = torch.empty(horizon, environments, width, device="cuda", dtype=torch.bfloat16) if fix else None

    def step() -> Any:
        state, trajectory = start, start.new_empty(0, environments, width) if room is None else room
        for index in range(horizon):
            state = torch.tanh(state @ dynamics)
            if fix:
                trajectory[index] = state
            else:
                trajectory = torch.cat([trajectory, state.unsqueeze(0)])  # planted
        return trajectory

    return step
