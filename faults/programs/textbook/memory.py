"""Cause `memory`: memory that is allocated, freed or copied more often than necessary."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted


@planted("memory", "preallocate")
def trajectory_grown_by_concatenation(torch: Any, fix: str | None) -> Step:
    """A simulation of damped pendulums keeps its trajectory by concatenating every new state to it.

    All earlier states are copied for each new one, 32 times over. The number of states is known, so each can be
    written to its place in a tensor that is allocated once.
    """
    pendulums, states = 3 * 2**20, 32
    start = torch.rand(1, pendulums, device="cuda") * 6.28
    kept = torch.empty(states, pendulums, device="cuda")

    def step() -> Any:
        state, trajectory = start, start[:0]
        for index in range(states):
            state = torch.sub(state, torch.sin(state), alpha=0.01)
            if fix:
                kept[index] = state[0]
            else:
                trajectory = torch.cat((trajectory, state))  # planted
        return kept if fix else trajectory

    return step


@planted("memory", "no_empty_cache")
def tiles_with_the_cache_emptied(torch: Any, fix: str | None) -> Step:
    """A satellite image is segmented in four tiles, and `empty_cache` is called after each of them.

    What the allocator gives back to the driver it has to ask for again for the next tile, which is of the same
    size. Left alone it hands the same blocks out again at no cost.
    """
    channels, side = 64, 1024
    filters = [
        (torch.randn(channels, channels, 3, 3, device="cuda") * (4.5 * channels) ** -0.5).to(
            torch.bfloat16, memory_format=torch.channels_last
        )
        for _ in range(3)
    ]
    tiles = [
        torch.randn(1, channels, side, side, device="cuda", dtype=torch.bfloat16).to(memory_format=torch.channels_last)
        for _ in range(4)
    ]

    def step() -> Any:
        means = []
        for tile in tiles:
            y = tile
            for weight in filters:
                y = torch.relu(torch.nn.functional.conv2d(y, weight, padding=1))
            means.append(y.mean((2, 3)))
            del y
            if not fix:
                torch.cuda.empty_cache()  # planted
        return means

    return step
