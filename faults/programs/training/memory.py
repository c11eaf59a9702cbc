"""Cause `memory`: experience that is put together again and again."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import weights


@planted("memory", "preallocate", also=("drop_copies",))
def rollout_stacked_in_every_epoch(torch: Any, fix: str | None) -> Step:
    """An agent keeps the 64 observations of a rollout in a list, and stacks them for each of eight epochs.

    Every epoch copies 134 MB that have not changed, which takes longer than the policy does to look at them. The
    environment can write its observations into one tensor, or the list can be stacked once.
    """
    times, environments, width, actions = 64, 1024, 1024, 16
    rollout = torch.randn(times, environments, width, device="cuda", dtype=torch.bfloat16)
    observations = [observation.clone() for observation in rollout.unbind(0)]
    (policy,) = weights(torch, 1, width, actions, torch.bfloat16)
    advantages = torch.randn(times, environments, actions, device="cuda", dtype=torch.bfloat16)

    def step() -> Any:
        gains, weight = [], policy
        stacked = rollout if fix == "preallocate" else torch.stack(observations) if fix else None
        for _ in range(8):
            seen = torch.stack(observations) if stacked is None else stacked  # planted
            gain = (seen @ weight).tanh() * advantages
            weight = weight + gain.mean()
            gains.append(gain.sum())
        return gains

    return step
