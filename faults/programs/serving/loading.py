"""Cause `input`: recordings that are expanded in Python while the GPU waits."""

from __future__ import annotations

import array
import random
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import batches, weights

SAMPLES = 160 * 2002
CALLS = 4


def _law() -> list[float]:
    """The loudness that each of the 256 codes of telephony stands for."""
    return [(1 if code < 128 else -1) * (256 ** ((code & 127) / 127) - 1) / 255 for code in range(256)]


@planted("input", "prefetch", trap=True, innocent="pin_memory")
def calls_expanded_in_python(torch: Any, fix: str | None) -> Step:
    """A recogniser of telephone calls looks each 8-bit sample up in a table, in Python, before each batch.

    That takes longer than the batch does on the GPU; worker processes can do it ahead. The copy from ordinary memory
    catches the eye, but it is short beside the wait for the samples.
    """
    law, noise = _law(), random.Random(0)
    calls = [noise.randbytes(SAMPLES) for _ in range(CALLS)]
    layers = [
        *weights(torch, 1, 400, 4096, torch.bfloat16),
        *weights(torch, 8, 4096, 4096, torch.bfloat16),
    ]

    def make(index: int) -> Any:
        expanded = array.array("f", map(law.__getitem__, calls[index % CALLS]))  # planted
        return torch.frombuffer(expanded, dtype=torch.float32).unfold(0, 400, 160).contiguous()

    source = batches(torch, make, workers=6 if fix == "prefetch" else 0)

    def step() -> Any:
        frames = next(source)  # planted
        if fix == "pin_memory":
            frames = frames.pin_memory()
        x = frames.to("cuda", non_blocking=True).bfloat16()
        for weight in layers:
            x = x @ weight
        return x.mean(0)

    return step
