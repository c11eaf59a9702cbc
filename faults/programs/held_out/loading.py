"""Cause `input`: samples that are decompressed, and experience that is looked up, between two steps."""

from __future__ import annotations

import random
import time
import zlib
from collections.abc import Iterator
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import SETTLE_S, Samples, batches, weights

WORKERS = 12


@planted("input", "prefetch")
def decompressing_samples(torch: Any, fix: str | None) -> Step:
    """A DataLoader without workers decompresses 32 samples of 16 KiB for every batch.

    Twelve workers decompress ahead, while the GPU computes.
    """
    noise = random.Random(0)
    packed = [zlib.compress(bytes(noise.choices(range(48), k=16384)), 1) for _ in range(8)]

    def sample(index: int) -> Any:
        content = bytearray(zlib.decompress(packed[index % 8]))  # planted
        return torch.frombuffer(content, dtype=torch.uint8)[:1024].clone()

    settings = {"num_workers": WORKERS, "prefetch_factor": 4, "multiprocessing_context": "fork"} if fix else {}
    loader = iter(torch.utils.data.DataLoader(Samples(sample), batch_size=32, **settings))
    if fix:
        time.sleep(SETTLE_S)
    table = torch.randn(256, 256, device="cuda", dtype=torch.bfloat16)
    ups, downs = weights(torch, 3, 2048, 8192, torch.bfloat16), weights(torch, 3, 8192, 2048, torch.bfloat16)

    def step() -> Any:
        letters = next(loader).to("cuda")
        y = torch.nn.functional.embedding(letters.int(), table).view(-1, 2048)
        for up, down in zip(ups, downs, strict=True):
            y = torch.relu(y @ up) @ down
        return y

    return step


@planted("input", "prefetch")
def experience_looked_up_in_python(torch: Any, fix: str | None) -> Step:
    """A replay buffer of Python lists: 512 moments are drawn, and their returns added up, before every step.

    Worker processes draw the next batches meanwhile; none of it depends on the step.
    """
    history, ahead = 20_000, 128
    past = random.Random(1)
    rewards = [past.random() for _ in range(history)]
    observations = [[past.random() for _ in range(15)] for _ in range(history)]

    def draw(index: int) -> Any:
        chance, rows = random.Random(index), []
        for _ in range(512):
            moment, value = chance.randrange(history - ahead), 0.0
            for reward in rewards[moment : moment + ahead]:
                value = reward + 0.99 * value  # planted
            rows.append([*observations[moment], value])  # planted
        return torch.tensor(rows)

    source: Iterator[Any] = batches(torch, draw, workers=WORKERS if fix else 0)
    (read,) = weights(torch, 1, 16, 16 * 4096, torch.bfloat16)
    layers = weights(torch, 4, 4096, 4096, torch.bfloat16)

    def step() -> Any:
        y = (next(source).to("cuda").to(torch.bfloat16) @ read).view(-1, 4096)
        for weight in layers:
            y = torch.relu(y @ weight)
        return y

    return step
