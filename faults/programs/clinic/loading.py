"""Cause `input`: the training loop prepares its own batches."""

from __future__ import annotations

import random
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.sealed.parts import endless, hugging_face, sizes

MASK, FIRST, IGNORED = 3, 5, -100
"""The token that hides a word, the first ordinary token, and the label of what is not asked."""
CONSONANTS, VOWELS = "bcdfghjklmnpqrstvwxyz", "aeiou"


def batches(torch: Any, data: Any, ahead: bool) -> Any:
    """The batches of a data set without end, by workers into pinned memory or by the caller."""
    workers = sizes(8, 1) if ahead else 0
    loader = torch.utils.data.DataLoader(
        data,
        batch_size=None,
        num_workers=workers,
        pin_memory=ahead,
        persistent_workers=bool(workers),
        prefetch_factor=4 if workers else None,
    )
    return endless(loader)


class HiddenWords:
    """Sentences; those of a batch are cut into pieces, and some whole words are hidden, as BERT's authors did it."""

    def __init__(self, torch: Any, batch: int, length: int, vocabulary: int) -> None:
        self._torch, self._batch, self._length, self._vocabulary = torch, batch, length, vocabulary
        pairs = [first + second for first in CONSONANTS for second in VOWELS]
        pieces = [*CONSONANTS, *VOWELS, *pairs, *(pair + last for pair in pairs for last in CONSONANTS)]
        self._numbers = {piece: FIRST + place for place, piece in enumerate(pieces[: vocabulary - FIRST])}
        dice, known = random.Random(0), list(self._numbers)
        words = ["".join(dice.choices(known, k=dice.randrange(1, 4))) for _ in range(5000)]
        self._sentences = [" ".join(dice.choices(words, k=length)) for _ in range(256)]

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        dice = random.Random(index)
        pairs = [self._hide(self._words(dice.choice(self._sentences)), dice) for _ in range(self._batch)]
        shown, labels = zip(*pairs, strict=True)
        return self._torch.tensor(shown), self._torch.tensor(labels)

    def _hide(self, words: list[list[int]], dice: random.Random) -> tuple[list[int], list[int]]:
        shown: list[int] = []
        labels: list[int] = []
        for word in words:
            hidden = dice.random() < 0.15
            for piece in word:
                chance = dice.random() if hidden else 1.0
                other = dice.randrange(FIRST, self._vocabulary) if chance < 0.9 else piece
                shown.append(MASK if chance < 0.8 else other)
                labels.append(piece if hidden else IGNORED)
        return shown[: self._length], labels[: self._length]

    def _words(self, sentence: str) -> list[list[int]]:
        words: list[list[int]] = []
        count = 0
        for word in sentence.split():
            words.append(self._pieces(word))
            count += len(words[-1])
            if count >= self._length:
                break
        return words

    def _pieces(self, word: str) -> list[int]:
        pieces, start = [], 0
        while start < len(word):
            end = next(end for end in range(len(word), start, -1) if word[start:end] in self._numbers)
            pieces.append(self._numbers[word[start:end]])
            start = end
        return pieces


@planted("input", "prefetch", steps=3)
def distilbert_that_hides_its_own_words(torch: Any, fix: str | None) -> Step:
    """A DistilBERT learns hidden words, and a `DataLoader` without workers cuts and hides them in Python.

    That takes the main process longer than the GPU needs for a step. Workers hide the words of the next batches
    meanwhile.
    """
    transformers = hugging_face()
    width, layers, heads, vocabulary, batch, length = sizes((768, 6, 12, 8192, 48, 128), (32, 1, 2, 100, 4, 24))
    config = transformers.DistilBertConfig(
        vocab_size=vocabulary,
        dim=width,
        n_layers=layers,
        n_heads=heads,
        hidden_dim=4 * width,
        max_position_embeddings=length,
        dropout=0.0,
        attention_dropout=0.0,
    )
    model = transformers.DistilBertForMaskedLM(config).to("cuda", torch.bfloat16).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    source = batches(torch, HiddenWords(torch, batch, length, vocabulary), bool(fix))

    def step() -> Any:
        shown, labels = (part.to("cuda", non_blocking=True) for part in next(source))  # planted
        loss = model(input_ids=shown, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return step


class Visits:
    """Visits to a shop: what each visitor saw before, what came next, and things drawn that the visitor never saw."""

    def __init__(self, torch: Any, visitors: int, items: int, seen: int, drawn: int) -> None:
        self._torch, self._visitors, self._items, self._drawn = torch, visitors, items, drawn
        dice = random.Random(0)
        self._histories = [[dice.randrange(items) for _ in range(dice.randrange(2, seen))] for _ in range(2000)]

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> tuple[Any, Any, Any]:
        dice = random.Random(index)
        before: list[int] = []
        starts, candidates = [], []
        for _ in range(self._visitors):
            history = dice.choice(self._histories)
            starts.append(len(before))
            before += history[:-1]
            candidates.append([history[-1], *self._never_seen(set(history), dice)])
        return self._torch.tensor(before), self._torch.tensor(starts), self._torch.tensor(candidates)

    def _never_seen(self, history: set[int], dice: random.Random) -> list[int]:
        drawn: list[int] = []
        while len(drawn) < self._drawn:
            item = int(dice.random() ** 2 * self._items)
            if item not in history:
                drawn.append(item)
        return drawn


@planted("input", "prefetch")
def recommender_that_draws_its_own_negatives(torch: Any, fix: str | None) -> Step:
    """A recommender learns what visitors want next, and the loop draws for each 12 things that the visitor never saw.

    The main process draws them one by one in Python, and the GPU waits, as its own part of a step is short. Workers
    draw those of the next batches meanwhile.
    """
    nn, functional = torch.nn, torch.nn.functional
    visitors, items, seen, drawn, width = sizes((512, 200_000, 60, 12, 128), (3, 40, 6, 2, 8))
    torch.backends.cuda.matmul.allow_tf32 = True
    history = nn.EmbeddingBag(items, width, mode="mean").to("cuda")
    tower = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)).to("cuda")
    optimizer = torch.optim.SGD([*history.parameters(), *tower.parameters()], lr=0.01, fused=True)
    source = batches(torch, Visits(torch, visitors, items, seen, drawn), bool(fix))
    first = torch.zeros(visitors, device="cuda", dtype=torch.long)

    def step() -> Any:
        before, starts, candidates = (part.to("cuda", non_blocking=True) for part in next(source))  # planted
        optimizer.zero_grad(set_to_none=True)
        visitor = tower(history(before, starts))
        things = functional.embedding(candidates, history.weight)
        loss = functional.cross_entropy((things @ visitor.unsqueeze(-1)).squeeze(-1), first)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
