"""Where a compiler splits a chain of ops whose shapes were not recorded, by their names."""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import pairwise

from warpline.work.elementwise import in_place

MAX_REDUCTIONS = 4
"""Reductions in one kernel: a hand-written norm or softmax has two or three; a loop of them is not one kernel."""
MAX_JOINS = 4
"""Concatenations in one chain, as in rotary embeddings. More are a loop in which a tensor grows."""


def cuts(names: Sequence[str], reducing: Container[str], joining: Container[str]) -> list[int]:
    """Positions at which kernels begin.

    If there are many joins, each is a kernel of its own, because it copies all earlier data. A repeated in-place op
    works on another tensor.
    """
    starts, reductions = [0], 0
    if sum(name in joining for name in names) <= MAX_JOINS:
        joining = ()
    for position, (before, name) in enumerate(pairwise(names), 1):
        reductions += before in reducing
        alone = before in joining or name in joining
        if alone or reductions >= MAX_REDUCTIONS or (name == before and in_place(name)):
            starts.append(position)
            reductions = 0
    return starts
