"""Cause `input`: the GPU waits for data that the CPU is still making or fetching.

Each batch is 32 KiB, small enough for its copy not to wait for the GPU, and feeds a millisecond of matmuls; so a
loader that keeps up is hidden behind them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import batches, fetched_ahead, weights

ROWS, COLUMNS = 64, 128


def _training_on(torch: Any, source: Iterator[Any]) -> Step:
    """A step that takes a batch, copies it to the GPU, and runs three large blocks on it."""
    (expand,) = weights(torch, 1, COLUMNS, 64 * 2048, torch.bfloat16)
    ups = weights(torch, 3, 2048, 8192, torch.bfloat16)
    downs = weights(torch, 3, 8192, 2048, torch.bfloat16)

    def step() -> Any:
        batch = next(source)
        y = (batch.to("cuda").to(torch.bfloat16) @ expand).view(-1, 2048)
        for up, down in zip(ups, downs, strict=True):
            y = torch.relu(y @ up) @ down
        return y

    return step


@planted("input", "prefetch")
def slow_storage(torch: Any, fix: str | None) -> Step:
    """Fetching a batch takes 4 ms of waiting (a sleep stands for the storage), in the loop itself.

    The wait needs no CPU: threads that fetch ahead hide all of it.
    """

    def make(index: int) -> Any:
        time.sleep(0.004)  # planted
        return torch.full((ROWS, COLUMNS), index % 97 / 97)

    return _training_on(torch, fetched_ahead(make, threads=8) if fix else batches(torch, make, workers=0))


@planted("input", "prefetch")
def augmentation_in_the_loop(torch: Any, fix: str | None) -> Step:
    """Batches are augmented on the CPU, between two steps, in the process that feeds the GPU.

    Worker processes do the same arithmetic while the GPU computes.
    """
    image = torch.randn(ROWS, COLUMNS)

    def make(index: int) -> Any:
        noise = torch.randn(128, ROWS, COLUMNS)  # planted
        return image.roll(index, 1) + noise.mean(0)  # planted

    return _training_on(torch, batches(torch, make, workers=12 if fix else 0))


@planted("input", "prefetch")
def tokenising_in_the_loop(torch: Any, fix: str | None) -> Step:
    """Text is looked up and merged in pure Python before every step.

    Worker processes have interpreters of their own, so they do it while this one launches.
    """
    text = ["the", "quick", "brown", "fox", "jumps", "over", "lazy", "dogs"] * (COLUMNS // 8)
    vocabulary = {word: 17 * index for index, word in enumerate(text[:8])}

    def make(index: int) -> Any:
        rows = []
        for row in range(ROWS):
            numbers = [vocabulary[word] + index for word in text]  # planted
            for merge in range(8):
                numbers = [(number * 31 + merge + row) % 997 for number in numbers]  # planted
            rows.append(numbers)
        return torch.tensor(rows, dtype=torch.float32) / 997

    return _training_on(torch, batches(torch, make, workers=12 if fix else 0))


@planted("input", "prefetch")
def one_worker_too_slow(torch: Any, fix: str | None) -> Step:
    """A DataLoader with one worker, which takes 5 ms for a batch that the GPU is done with in one.

    The loop waits in the loader's queue; twelve workers together make a batch in less than the GPU takes.
    """

    def make(index: int) -> Any:
        time.sleep(0.005)
        return torch.full((ROWS, COLUMNS), index % 97 / 97)

    return _training_on(torch, batches(torch, make, workers=12 if fix else 1))
