"""Rows found by key, held against a dictionary."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from warpline.trace.arrays import NONE
from warpline.trace.lookup import Lookup, pair_keys

HUGE = 2**62
KEYS = st.one_of(st.integers(0, 20), st.integers(-HUGE, HUGE))


@given(st.lists(KEYS, max_size=30), st.lists(KEYS, max_size=10))
def test_the_first_or_the_last_row_of_a_key_is_found(keys: list[int], others: list[int]) -> None:
    rows = np.arange(len(keys)) * 3
    column, asked = np.array(keys, np.int64), np.array(keys + others, np.int64)
    last = {key: 3 * row for row, key in enumerate(keys)}
    first = {key: 3 * row for row, key in reversed(list(enumerate(keys)))}
    assert Lookup.last(column, rows).find(asked).tolist() == [last.get(key, NONE) for key in keys + others]
    assert Lookup.first(column, rows).find(asked).tolist() == [first.get(key, NONE) for key in keys + others]


PAIRS = st.tuples(st.one_of(st.integers(-1, 3), st.just(-HUGE)), st.one_of(st.integers(0, 5), st.just(HUGE)))


@given(st.lists(PAIRS, max_size=20), st.lists(PAIRS, max_size=10))
def test_two_columns_make_one_key(pairs: list[tuple[int, int]], others: list[tuple[int, int]]) -> None:
    have, want = np.array(pairs, np.int64).reshape(-1, 2), np.array(pairs + others, np.int64).reshape(-1, 2)
    keys, asked = pair_keys(have[:, 0], have[:, 1], want[:, 0], want[:, 1])
    rows = {pair: row for row, pair in enumerate(pairs)}
    found = Lookup.last(keys, np.arange(len(pairs))).find(asked)
    assert found.tolist() == [rows.get(pair, NONE) for pair in pairs + others]
