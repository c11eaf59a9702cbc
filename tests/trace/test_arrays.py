"""Arrays of numbers: combinations, matching rows and hashes, held against plain Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from warpline.trace.arrays import NONE, combinations, containing, hashed, last_match

HUGE = 2**62
PAIRS = st.tuples(st.one_of(st.integers(-1, 3), st.just(-HUGE)), st.one_of(st.integers(0, 5), st.just(HUGE)))


def test_combinations_are_numbered_in_ascending_order() -> None:
    first, second = np.array([2, 1, 2, 1, 2]), np.array([-1, 7, -1, 5, 0])
    one_of_each, which = combinations(first, second)
    assert list(zip(first[one_of_each], second[one_of_each], strict=True)) == [(1, 5), (1, 7), (2, -1), (2, 0)]
    assert which.tolist() == [2, 1, 2, 0, 3]


def test_no_rows_have_no_combinations() -> None:
    one_of_each, which = combinations(np.empty(0, np.int64), np.empty(0, np.int64))
    assert not len(one_of_each)
    assert not len(which)


@given(st.lists(PAIRS, max_size=20), st.lists(PAIRS, max_size=10))
def test_the_last_row_with_the_same_values_is_found(
    pairs: list[tuple[int, int]], others: list[tuple[int, int]]
) -> None:
    keys, asked = (np.array(some, np.int64).reshape(-1, 2).T for some in (pairs, pairs + others))
    row = {pair: number for number, pair in enumerate(pairs)}
    assert last_match(list(keys), list(asked)).tolist() == [row.get(pair, NONE) for pair in pairs + others]


def test_moments_find_the_interval_that_they_lie_in() -> None:
    starts, ends = np.array([10, 30]), np.array([20, 40])
    moments = np.array([-5, 9, 10, 19, 20, 30, 39, 40])
    assert containing(starts, ends, moments).tolist() == [NONE, NONE, 0, 0, NONE, 1, 1, NONE]
    assert containing(starts[:0], ends[:0], moments).tolist() == [NONE] * len(moments)


@given(st.lists(PAIRS, min_size=1, max_size=20))
def test_rows_have_the_same_hash_if_and_only_if_their_values_are_the_same(pairs: list[tuple[int, int]]) -> None:
    first, second = np.array(pairs, np.int64).T
    _, numbers = np.unique(hashed(first, second), return_inverse=True)
    known = dict(zip(pairs, numbers.tolist(), strict=True))
    assert [known[pair] for pair in pairs] == numbers.tolist()
    assert len(set(known.values())) == len(known)
