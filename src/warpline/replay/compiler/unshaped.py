"""Where a compiler cuts a chain of ops whose shapes were not recorded, by their names."""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import pairwise

from warpline.work.elementwise import in_place

MOST_REDUCTIONS = 4
"""In one kernel: a norm or a softmax written by hand has two or three; a loop of them is not one kernel."""
MOST_JOINS = 4
"""In one chain: halves that are turned and put together again. More are a loop in which something grows."""


def cuts(names: Sequence[str], reducing: Container[str], joining: Container[str]) -> list[int]:
    """Positions at which kernels begin.

    Where many are joined, each join stands alone: it copies what was there before. The same op in place again is about
    another tensor.
    """
    starts, reductions = [0], 0
    if sum(name in joining for name in names) <= MOST_JOINS:
        joining = ()
    for position, (before, name) in enumerate(pairwise(names), 1):
        reductions += before in reducing
        alone = before in joining or name in joining
        if alone or reductions >= MOST_REDUCTIONS or (name == before and in_place(name)):
            starts.append(position)
            reductions = 0
    return starts
