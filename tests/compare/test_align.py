"""The alignment against the plain textbook form on random sequences, and on large ones."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from warpline.compare import align as aligning
from warpline.compare.align import align

CODES = st.lists(st.integers(0, 4), max_size=12)
TABLE = np.array([[9, 0, 3, 0, 0], [0, 9, 0, 5, 0], [3, 0, 9, 0, 0], [0, 5, 0, 9, 1], [0, 0, 0, 1, 9]], float)


def largest_sum(left: list[int], right: list[int]) -> float:
    best = [[0.0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i, mine in enumerate(left):
        for j, other in enumerate(right):
            best[i + 1][j + 1] = max(best[i][j + 1], best[i + 1][j], best[i][j] + TABLE[mine, other])
    return best[-1][-1]


@given(CODES, CODES, st.sampled_from([1, 6, aligning.SMALL]))
@settings(max_examples=150, deadline=None)
def test_pairs_are_in_order_and_their_sum_is_the_largest(left: list[int], right: list[int], small: int) -> None:
    kept = aligning.SMALL
    aligning.SMALL = small  # so that short sequences are halved too
    try:
        pairs = align(np.array(left, np.int64), np.array(right, np.int64), TABLE)
    finally:
        aligning.SMALL = kept
    assert all(mine < later and other < after for (mine, other), (later, after) in pairwise(pairs))
    assert all(TABLE[left[mine], right[other]] > 0 for mine, other in pairs)
    assert sum(TABLE[left[mine], right[other]] for mine, other in pairs) == largest_sum(left, right)


def test_a_long_sequence_with_one_element_less_keeps_all_others() -> None:
    layer = np.arange(5)
    left = np.tile(layer, 600)
    right = np.delete(left, 1502)
    pairs = align(left, right, TABLE)
    assert len(pairs) == len(right)
    assert len({mine for mine, _ in pairs}) == len(right)
