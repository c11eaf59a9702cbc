"""Cause `input`: the GPU waits for batches that the CPU prepares too slowly or too late."""

from __future__ import annotations

import importlib
import itertools
import random
import time
from collections.abc import Iterator
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.sealed.parts import hugging_face, sizes

SETTLE_S = 0.5
"""How long new workers are given to start and to fill their queues."""
LETTERS = "etaoinshrdlu"
ATOMS = ("C", "C", "C", "C", "N", "O", "S", "F")


def batches(torch: Any, items: Any, size: int | None, workers: int, collate: Any = None) -> Iterator[Any]:
    """The batches of a `DataLoader` in the order of the items: by workers into pinned memory, or by the caller."""
    kind = {"prefetch_factor": 4, "multiprocessing_context": "fork", "pin_memory": True} if workers else {}
    loader = torch.utils.data.DataLoader(items, size, num_workers=workers, collate_fn=collate, **kind)
    result: Iterator[Any] = iter(loader)
    if workers:
        time.sleep(sizes(SETTLE_S, 0.0))
    return result


class Programs:
    """Program texts, cut into tokens by merging pairs of bytes when they are asked for."""

    def __init__(self, torch: Any, length: int, merges: int) -> None:
        chance = random.Random(0)
        words = ["".join(chance.choices(LETTERS, k=chance.randint(2, 9))) for _ in range(400)]
        self._torch, self._length = torch, length
        self._texts = [" ".join(chance.choices(words, k=length * 2 // 5)) for _ in range(64)]
        self._merges: dict[tuple[int, int], int] = {}
        frequent = sorted({(ord(a), ord(b)) for a in LETTERS for b in f"{LETTERS} "})
        for number, pair in enumerate(frequent[:merges]):
            self._merges[pair] = 256 + number

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> Any:
        tokens = self.encode(self._texts[index % len(self._texts)])[: self._length]
        return self._torch.tensor(tokens + [0] * (self._length - len(tokens)))

    def encode(self, text: str) -> list[int]:
        """The tokens of a text, word by word, with the earliest merge that applies made first."""
        tokens: list[int] = []
        for word in text.split(" "):
            pieces = list(f"{word} ".encode())
            while len(pieces) > 1:
                pairs = set(itertools.pairwise(pieces))
                pair = min(pairs, key=lambda pair: self._merges.get(pair, 1 << 30))
                if pair not in self._merges:
                    break
                pieces = merged(pieces, pair, self._merges[pair])
            tokens += pieces
        return tokens


def merged(pieces: list[int], pair: tuple[int, int], number: int) -> list[int]:
    """The pieces with each such pair made one."""
    result, place = [], 0
    while place < len(pieces):
        if tuple(pieces[place : place + 2]) == pair:
            result.append(number)
            place += 2
        else:
            result.append(pieces[place])
            place += 1
    return result


@planted("input", "prefetch", steps=2)
def code_model_that_merges_bytes_as_it_learns(torch: Any, fix: str | None) -> Step:
    """A GPTBigCode learns to write programs, and a `DataLoader` without workers makes its tokens in plain Python.

    Merging pairs of bytes takes the CPU longer than the GPU needs for the whole step, and the GPU waits. Twelve workers
    make the next batches while it computes.
    """
    transformers = hugging_face()
    width, layers, heads, vocabulary, batch, length = sizes((1024, 4, 16, 1024, 8, 512), (16, 1, 2, 512, 2, 8))
    config = transformers.GPTBigCodeConfig(
        vocab_size=vocabulary,
        n_positions=length,
        n_embd=width,
        n_layer=layers,
        n_head=heads,
        n_inner=4 * width,
        use_cache=False,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=0,
    )
    texts = batches(torch, Programs(torch, length, 150), batch, workers=sizes(12, 1) if fix else 0)  # planted
    model = transformers.GPTBigCodeForCausalLM(config).to("cuda", torch.bfloat16).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step() -> Any:
        tokens = next(texts).to("cuda", non_blocking=True)  # planted
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return step


class Heartbeats:
    """Electrocardiograms, each warped, scaled, shifted and made noisy by numpy when it is asked for."""

    def __init__(self, torch: Any, leads: int, length: int, kinds: int) -> None:
        self._numpy, self._torch = importlib.import_module("numpy"), torch
        chance = self._numpy.random.default_rng(0)
        self._curves = chance.standard_normal((32, leads, length), dtype="float32")
        self._kinds = kinds

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> Any:
        numpy, chance = self._numpy, self._numpy.random.default_rng(index)
        curve = self._curves[index % len(self._curves)]
        leads, length = curve.shape
        places = numpy.arange(length)
        knots = numpy.linspace(0, length - 1, 8)
        warped = numpy.interp(places, knots, knots + chance.normal(0, length / 200, 8))
        curve = numpy.stack([numpy.interp(warped, places, lead) for lead in curve])
        wander = numpy.sin(places * chance.uniform(0.001, 0.01) + chance.uniform(0, 6)) * chance.uniform(0, 0.3)
        curve = curve * chance.uniform(0.8, 1.2, (leads, 1)) + wander + chance.normal(0, 0.05, curve.shape)
        curve = (curve - curve.mean(1, keepdims=True)) / (curve.std(1, keepdims=True) + 1e-6)
        return self._torch.from_numpy(curve.astype("float32")), index % self._kinds


@planted("input", "prefetch", steps=3)
def heartbeats_warped_between_the_steps(torch: Any, fix: str | None) -> Step:
    """A residual network learns to read electrocardiograms, and numpy warps the 64 of a batch before each step.

    `DataLoader(records, batch_size=64)` has no workers, so that warping and training take turns. With fourteen workers
    the next batches are ready when the GPU wants them.
    """
    nn, functional = torch.nn, torch.nn.functional
    leads, length, width, blocks, batch, kinds = sizes((12, 1000, 128, 8, 64, 9), (2, 64, 8, 1, 4, 3))
    workers = sizes(14, 1) if fix else 0  # planted
    records = batches(torch, Heartbeats(torch, leads, length, kinds), batch, workers)  # planted

    class Block(torch.nn.Module):  # type: ignore[misc]
        def __init__(self, stride: int) -> None:
            super().__init__()
            self.inner = nn.Sequential(
                nn.Conv1d(width, width, 15, padding=7, bias=False),
                nn.BatchNorm1d(width),
                nn.ReLU(),
                nn.Conv1d(width, width, 15, stride=stride, padding=7, bias=False),
                nn.BatchNorm1d(width),
            )
            self.short = nn.AvgPool1d(stride, ceil_mode=True)

        def forward(self, x: Any) -> Any:
            return functional.relu(self.short(x) + self.inner(x))

    stem = [nn.Conv1d(leads, width, 15, stride=2, padding=7, bias=False), nn.BatchNorm1d(width), nn.ReLU()]
    layers = [*stem, *(Block(1 + place % 2) for place in range(blocks)), nn.AdaptiveAvgPool1d(1), nn.Flatten()]
    network = nn.Sequential(*layers, nn.Linear(width, kinds)).to("cuda")
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, fused=True)

    def step() -> Any:
        curves, diagnoses = (part.to("cuda", non_blocking=True) for part in next(records))  # planted
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = functional.cross_entropy(network(curves).float(), diagnoses)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return step


class Molecules:
    """Molecules as text, with an affinity each; read when they are asked for."""

    def __init__(self, torch: Any, atoms: int) -> None:
        self._torch, chance = torch, random.Random(0)
        self._texts = [self.draw(chance, atoms) for _ in range(256)]

    @staticmethod
    def draw(chance: random.Random, atoms: int) -> str:
        """A chain with rings and branches."""
        parts = []
        for place in range(atoms):
            atom = chance.choice(ATOMS)
            parts.append(f"({atom})" if place % 7 == 4 else f"{atom}1" if place % 8 in (1, 6) else atom)
        return "".join(parts)

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> tuple[list[int], list[tuple[int, int]], float]:
        text = self._texts[index % len(self._texts)]
        atoms: list[str] = []
        bonds: list[tuple[int, int]] = []
        branches: list[int] = []
        ring, last = -1, -1
        for letter in text:
            if letter == "(":
                branches.append(last)
            elif letter == ")":
                last = branches.pop()
            elif letter == "1":
                if ring < 0:
                    ring = last
                else:
                    bonds.append((ring, last))
                    ring = -1
            else:
                atoms.append(letter)
                if last >= 0:
                    bonds.append((last, len(atoms) - 1))
                last = len(atoms) - 1
        return self.features(atoms, bonds), bonds + [(b, a) for a, b in bonds], len(text) % 11 / 10

    @staticmethod
    def features(atoms: list[str], bonds: list[Any]) -> list[int]:
        """A number for each atom: its element, how many bonds it has, and how many neighbours that are not carbon."""
        near: list[list[int]] = [[] for _ in atoms]
        for a, b in bonds:
            near[a].append(b)
            near[b].append(a)
        return [
            64 * ATOMS.index(atom) + 8 * min(len(near[place]), 7) + min(sum(atoms[x] != "C" for x in near[place]), 7)
            for place, atom in enumerate(atoms)
        ]

    def joined(self, items: list[Any]) -> Any:
        """A batch as one graph: the atoms, the bonds, the molecule of each atom, and the affinities."""
        torch = self._torch
        atoms: list[int] = []
        bonds: list[tuple[int, int]] = []
        owners: list[int] = []
        for number, (own, pairs, _) in enumerate(items):
            bonds += [(a + len(atoms), b + len(atoms)) for a, b in pairs]
            atoms += own
            owners += [number] * len(own)
        affinities = torch.tensor([affinity for _, _, affinity in items])
        return torch.tensor(atoms), torch.tensor(bonds).T.contiguous(), torch.tensor(owners), affinities


@planted("input", "prefetch", steps=2)
def molecules_read_by_two_workers(torch: Any, fix: str | None) -> Step:
    """A graph network learns affinities from 256 molecules a step, which two workers read from text in Python.

    Two workers need several times as long for a batch as the GPU needs to learn from it. There are sixteen cores, and
    fourteen workers keep up.
    """
    nn = torch.nn
    width, layers, batch, atoms = sizes((384, 6, 256, 30), (8, 1, 4, 9))
    molecules = Molecules(torch, atoms)
    workers = sizes(14, 1) if fix else sizes(2, 0)  # planted
    graphs = batches(torch, molecules, batch, workers, molecules.joined)  # planted
    embed = nn.Embedding(64 * len(ATOMS), width)
    mix = [nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)) for _ in range(layers)]
    network = nn.ModuleList((embed, nn.ModuleList(mix), nn.Linear(width, 1))).to("cuda")
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, fused=True)
    torch.backends.cuda.matmul.allow_tf32 = True

    def step() -> Any:
        kinds, bonds, owners, affinities = (part.to("cuda", non_blocking=True) for part in next(graphs))  # planted
        x = network[0](kinds)
        for layer in network[1]:
            x = x + layer(x.index_add(0, bonds[1], x[bonds[0]])).relu()
        pooled = x.new_zeros(batch, width).index_add(0, owners, x)
        loss = (network[2](pooled).squeeze(-1) / atoms - affinities).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return step
