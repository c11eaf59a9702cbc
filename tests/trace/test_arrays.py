"""Columns as arrays."""

from __future__ import annotations

import numpy as np

from warpline.trace.arrays import combinations


def test_combinations_are_numbered_in_ascending_order() -> None:
    first, second = np.array([2, 1, 2, 1, 2]), np.array([-1, 7, -1, 5, 0])
    one_of_each, which = combinations(first, second)
    assert list(zip(first[one_of_each], second[one_of_each], strict=True)) == [(1, 5), (1, 7), (2, -1), (2, 0)]
    assert which.tolist() == [2, 1, 2, 0, 3]


def test_no_rows_have_no_combinations() -> None:
    one_of_each, which = combinations(np.empty(0, np.int64), np.empty(0, np.int64))
    assert not len(one_of_each)
    assert not len(which)
