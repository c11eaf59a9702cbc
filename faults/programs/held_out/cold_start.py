"""Cause `cold_start`: transforms that are planned inside the steps that are measured."""

from __future__ import annotations

import itertools
from typing import Any

from faults.programs.case import Step, planted

STEPS = 5
_NUMBERS = itertools.count(1)
"""Numbers never used before: lengths that no cache of this process has seen."""


@planted("cold_start", "warm_up", steps=STEPS)
def transform_planned_for_every_clip(torch: Any, fix: str | None) -> Step:
    """Audio clips are filtered by Fourier transforms, and every step brings a clip of a new length.

    cuFFT plans each length once, there and back; lengths that were seen before, or padded to a few, have their plan.
    """
    lengths = [32_768] + [32_768 + 250 * next(_NUMBERS) for _ in range(STEPS)]
    known, *new = [torch.randn(16, length, device="cuda") for length in lengths]
    clips = itertools.cycle(new)

    def step(clip: Any = None) -> Any:
        clip = next(clips) if clip is None else clip
        heard = torch.fft.rfft(clip)  # planted
        return torch.fft.irfft(heard * 0.5, n=clip.shape[-1])  # planted

    step(known)  # loads the library, which is not this case's fault
    for _ in range(STEPS if fix else 0):
        step()
    torch.cuda.synchronize()
    return step
