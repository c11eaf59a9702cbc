"""The alignment against the plain textbook form on random sequences, and on large ones."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from warpline.compare import align as aligning
from warpline.compare.align import align
from warpline.trace.arrays import Floats

CODES = st.lists(st.integers(0, 4), max_size=12)
TABLE = np.array([[9, 0, 3, 0, 0], [0, 9, 0, 5, 0], [3, 0, 9, 0, 0], [0, 5, 0, 9, 1], [0, 0, 0, 1, 9]], float)


class Table:
    """A table of similarities."""

    def row(self, element: int) -> Floats:
        return TABLE[element]

    def of(self, element: int, other: int) -> float:
        return float(TABLE[element, other])

    def best(self) -> Floats:
        return TABLE.max(axis=1)

    def twins(self) -> dict[int, int]:
        return {code: code for code in range(len(TABLE))}


def largest_sum(left: list[int], right: list[int]) -> float:
    best = [[0.0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i, mine in enumerate(left):
        for j, other in enumerate(right):
            best[i + 1][j + 1] = max(best[i][j + 1], best[i + 1][j], best[i][j] + TABLE[mine, other])
    return best[-1][-1]


@given(CODES, CODES, st.sampled_from([1, 6, aligning.MAX_WHOLE_CELLS]))
@settings(max_examples=150, deadline=None)
def test_pairs_are_in_order_and_their_sum_is_the_largest(left: list[int], right: list[int], small: int) -> None:
    usual = aligning.MAX_WHOLE_CELLS
    aligning.MAX_WHOLE_CELLS = small  # so that short sequences are halved too
    try:
        pairs = align(np.array(left, np.int64), np.array(right, np.int64), Table())
    finally:
        aligning.MAX_WHOLE_CELLS = usual
    assert all(mine < later and other < after for (mine, other), (later, after) in pairwise(pairs))
    assert all(TABLE[left[mine], right[other]] > 0 for mine, other in pairs)
    assert sum(TABLE[left[mine], right[other]] for mine, other in pairs) == largest_sum(left, right)


def test_a_long_sequence_with_one_element_less_keeps_all_others() -> None:
    layer = np.arange(5)
    left = np.tile(layer, 600)
    right = np.delete(left, 1502)
    pairs = align(left, right, Table())
    assert len(pairs) == len(right)
    assert len({mine for mine, _ in pairs}) == len(right)


@given(st.permutations(range(5)), st.permutations(range(5)), st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_what_is_too_long_is_paired_at_what_occurs_once(left: list[int], right: list[int], times: int) -> None:
    usual = aligning.MAX_CELLS
    aligning.MAX_CELLS = 10
    try:
        pairs = align(np.array(left * times, np.int64), np.array(right, np.int64), Table())
    finally:
        aligning.MAX_CELLS = usual
    assert all(mine < later and other < after for (mine, other), (later, after) in pairwise(pairs))
    assert times > 1 or left != right or pairs == [(place, place) for place in range(5)]
    assert all(TABLE[(left * times)[mine], right[other]] > 0 for mine, other in pairs)
