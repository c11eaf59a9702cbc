"""Graph networks: molecules, and messages along edges that are summed with `index_add`."""

from __future__ import annotations

import random
from typing import Any

ATOM_KINDS, BOND_KINDS = 16, 4


class Molecules:
    """Random molecules: a chain of atoms with some rings."""

    def __init__(self, torch: Any, count: int) -> None:
        dice = random.Random(7)
        self._torch = torch
        self._atoms = [[dice.randrange(ATOM_KINDS) for _ in range(dice.randrange(14, 28))] for _ in range(count)]
        self._bonds: list[list[tuple[int, int, int]]] = []
        for atoms in self._atoms:
            chain = [(index, index + 1) for index in range(len(atoms) - 1)]
            rings = [(index, index + 5) for index in range(0, len(atoms) - 5, 6)]
            both = [pair for a, b in chain + rings for pair in ((a, b), (b, a))]
            self._bonds.append([(a, b, dice.randrange(BOND_KINDS)) for a, b in both])

    def single(self, index: int, device: str) -> tuple[Any, ...]:
        """One molecule: its atoms, its edges, their kinds, and the molecule of each atom (always the first)."""
        return self._tensors([index], device)

    def together(self, device: str) -> tuple[Any, ...]:
        """All of them as one graph of separate parts."""
        return self._tensors(range(len(self._atoms)), device)

    def _tensors(self, chosen: Any, device: str) -> tuple[Any, ...]:
        atoms: list[int] = []
        edges: list[tuple[int, int]] = []
        kinds: list[int] = []
        owners: list[int] = []
        for place, index in enumerate(chosen):
            first = len(atoms)
            edges += [(first + a, first + b) for a, b, _ in self._bonds[index]]
            kinds += [kind for _, _, kind in self._bonds[index]]
            owners += [place] * len(self._atoms[index])
            atoms += self._atoms[index]
        tensor = self._torch.tensor
        return (
            tensor(atoms, device=device),
            tensor(edges, device=device).T.contiguous(),
            tensor(kinds, device=device),
            tensor(owners, device=device),
        )


def message_network(torch: Any, width: int, layers: int) -> Any:
    """A network that predicts one number for each molecule."""
    nn = torch.nn

    class Messages(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.message = nn.Sequential(nn.Linear(2 * width, width), nn.SiLU(), nn.Linear(width, width))
            self.update = nn.Sequential(nn.Linear(2 * width, width), nn.SiLU(), nn.Linear(width, width))
            self.norm = nn.LayerNorm(width)

        def forward(self, atoms: Any, edges: Any, bonds: Any) -> Any:
            source, target = edges
            sent = self.message(torch.cat((atoms.index_select(0, source), bonds), -1))
            received = torch.zeros_like(atoms).index_add(0, target, sent)
            return atoms + self.update(torch.cat((self.norm(atoms), received), -1))

    class Network(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.atoms, self.bonds = nn.Embedding(ATOM_KINDS, width), nn.Embedding(BOND_KINDS, width)
            self.layers = nn.ModuleList(Messages() for _ in range(layers))
            self.head = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

        def forward(self, atoms: Any, edges: Any, kinds: Any, owners: Any, count: int) -> Any:
            x, bonds = self.atoms(atoms), self.bonds(kinds)
            for layer in self.layers:
                x = layer(x, edges, bonds)
            pooled = x.new_zeros(count, width).index_add(0, owners, x)
            return self.head(pooled).squeeze(-1)

    return Network()
