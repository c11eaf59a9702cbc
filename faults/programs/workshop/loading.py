"""Cause `input`: a dataset that does its work in the training loop."""

from __future__ import annotations

import random
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import batches

VOCABULARY, SENTENCES, LENGTH, MASK = 8192, 48, 128, 4


def masked(index: int) -> list[list[list[int]]]:
    """A batch of sentences with some of their words hidden or replaced, word by word, and the words to guess."""
    dice = random.Random(index)
    shown: list[list[int]] = []
    wanted: list[list[int]] = []
    for _ in range(SENTENCES):
        words = [dice.randrange(5, VOCABULARY) for _ in range(LENGTH)]
        row, guesses = [], []
        for word in words:
            throw = dice.random()
            row.append(word if throw > 0.15 else MASK if throw > 0.03 else dice.randrange(5, VOCABULARY))
            guesses.append(word if throw <= 0.15 else -100)
        shown.append(row)
        wanted.append(guesses)
    return [shown, wanted]


@planted("input", "prefetch", stacks=False)
def words_masked_by_the_training_loop(torch: Any, fix: str | None) -> Step:
    """A masked language model is trained from a DataLoader without workers, whose dataset masks word by word.

    The GPU waits while Python throws dice for six thousand words. Workers do that for the next batches meanwhile.
    """
    nn = torch.nn
    source = batches(torch, lambda index: torch.tensor(masked(index)), workers=8 if fix else 0)
    layers = [layer for _ in range(3) for layer in (nn.Linear(1024, 1024), nn.GELU())]
    model = nn.Sequential(nn.Embedding(VOCABULARY, 1024), *layers, nn.Linear(1024, VOCABULARY))
    model = model.to("cuda", torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)

    def step() -> Any:
        shown, wanted = next(source).to("cuda").unbind(0)  # planted
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(model(shown).flatten(0, 1), wanted.flatten())
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
