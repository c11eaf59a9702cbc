"""Cause `input`: batches that one thread makes from Python objects while the GPU waits."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import batches, weights


def _network(torch: Any, rows: int) -> Any:
    """An embedding and two matmuls, about a quarter of a millisecond on a GPU."""
    table = torch.randn(rows, 512, device="cuda", dtype=torch.bfloat16)
    layers = weights(torch, 2, 512, 512, torch.bfloat16)

    def loss(tokens: Any) -> Any:
        x = table[tokens]
        for weight in layers:
            x = x @ weight
        return x.float().square().mean()

    return loss


def _in_turn(make: Any) -> Iterator[Any]:
    """Endless batches, each made when it is asked for."""
    index = 0
    while True:
        yield make(index)
        index += 1


@planted("input", "prefetch", trap=True, innocent="remove_sync")
def impressions_parsed_from_json(torch: Any, fix: str | None) -> Step:
    """A recommender parses 256 lines of JSON for each batch in the training loop, which also reads every loss.

    The `.item()` is easy to blame, but the GPU is done long before the next batch is parsed, with or without it. Worker
    processes that parse ahead are the fix.
    """
    lines = [
        json.dumps({"user": user, "history": [(user * 31 + 7 * place) % 5000 for place in range(96)], "clicked": 1})
        for user in range(256)
    ]

    def make(index: int) -> Any:
        return torch.tensor([json.loads(line)["history"] for line in lines])  # planted

    loss = _network(torch, 5000)
    source = batches(torch, make, workers=6) if fix == "prefetch" else _in_turn(make)

    def step() -> Any:
        tokens = next(source)  # planted
        result = loss(tokens.to("cuda"))
        return result if fix == "remove_sync" else result.item()

    return step


@planted("input", "prefetch")
def negatives_drawn_with_rejection(torch: Any, fix: str | None) -> Step:
    """For each of 512 users a loop draws eight items that the user has not seen, with Python's `random`.

    It takes milliseconds, and the network on the GPU a fraction of one. Worker processes draw the next batches
    meanwhile.
    """
    seen = [frozenset(random.Random(user).sample(range(20000), 400)) for user in range(512)]

    def make(index: int) -> Any:
        draw = random.Random(index).randrange
        rows = []
        for known in seen:
            row: list[int] = []
            while len(row) < 8:
                item = draw(20000)
                if item not in known:
                    row.append(item)
            rows.append(row)
        return torch.tensor(rows)  # planted

    loss = _network(torch, 20000)
    source = batches(torch, make, workers=6) if fix else _in_turn(make)

    def step() -> Any:
        return loss(next(source).to("cuda"))  # planted

    return step


@planted("input", "prefetch")
def ragged_rows_padded_in_python(torch: Any, fix: str | None) -> Step:
    """A DataLoader without workers pads 96 lists of tokens to one length and makes a tensor of the nested list.

    Every number of it is a Python object that is looked at. With workers the same collation happens before the batch is
    needed.
    """
    rows = [[(17 * row + 3 * place) % 8000 for place in range(128 + (row * 37) % 385)] for row in range(96)]

    def make(index: int) -> Any:
        longest = max(map(len, rows))
        return torch.tensor([row + [0] * (longest - len(row)) for row in rows])  # planted

    loss = _network(torch, 8000)
    source = batches(torch, make, workers=6 if fix else 0)

    def step() -> Any:
        return loss(next(source).to("cuda"))  # planted

    return step
