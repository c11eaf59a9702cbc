"""Which op of one recording is which of another."""

from __future__ import annotations

import numpy as np

from warpline.trace.steps.same_ops import OpOrder, same_ops
from warpline.trace.table import Names, Words


def order(names: str, *, lanes: list[int] | None = None, parents: list[int] | None = None, step: int = 0) -> OpOrder:
    """Ops with names of one letter."""
    different = sorted(set(names))
    count = len(names)
    return OpOrder(
        Names(Words(different), np.array([different.index(name) for name in names])),
        np.array(lanes or [0] * count),
        np.full(count, step),
        np.array(parents or [-1] * count),
    )


def test_the_same_sequence_matches_as_it_is() -> None:
    assert same_ops(order("abca"), order("abca")).tolist() == [0, 1, 2, 3]


def test_what_differs_has_no_partner() -> None:
    assert same_ops(order("abxcd"), order("abycd")).tolist() == [0, 1, -1, 3, 4]
    assert same_ops(order("abcd"), order("abbcd")).tolist() == [0, 1, 3, 4]


def test_of_an_op_that_calls_others_those_before_the_difference_match() -> None:
    mine = order("apqb", parents=[-1, 0, 0, -1])
    other = order("aprb", parents=[-1, 0, 0, -1])
    assert same_ops(mine, other).tolist() == [0, 1, -1, 3]


def test_threads_are_told_apart_by_what_they_do() -> None:
    mine = order("abxy", lanes=[0, 0, 1, 1])
    other = order("xyab", lanes=[5, 5, 7, 7])
    assert same_ops(mine, other).tolist() == [2, 3, 0, 1]


def test_each_step_takes_the_step_that_is_most_like_it() -> None:
    names = Names(Words(["a", "b", "c"]), np.array([0, 1, 0, 2]))
    two = OpOrder(names, np.zeros(4, int), np.array([0, 0, 1, 1]), np.full(4, -1))
    assert same_ops(order("ab"), two).tolist() == [0, 1]
    assert same_ops(order("ac"), two).tolist() == [2, 3]
    assert same_ops(order("ac", step=-1), two).tolist() == [-1, -1]
