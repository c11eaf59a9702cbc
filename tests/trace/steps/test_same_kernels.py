"""The same operation in two sequences: by what it is, and by its neighbours where that is not enough."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from warpline.trace.arrays import NONE
from warpline.trace.steps.same_kernels import Sequence, fill_between, same_kernels


def sequence(text: str, lanes: str = "") -> Sequence:
    return Sequence(
        np.array([ord(letter) for letter in text], np.int64),
        np.array([int(lane) for lane in lanes or "0" * len(text)], np.int64),
    )


def partners(mine: str, other: str, labels: list[int]) -> list[int]:
    return same_kernels(sequence(mine), sequence(other), np.array(labels, np.int64)).tolist()


def test_a_kernel_with_one_label_needs_no_neighbours() -> None:
    assert partners("xax", "ab", [5, 6]) == [NONE, 0, NONE]


def test_neighbours_tell_ops_with_one_kernel_apart() -> None:
    # g serves two ops: after n, and after s.
    assert partners("ngsgngsg", "ngsg", [1, 2, 3, 4]) == [0, 1, 2, 3, 0, 1, 2, 3]


def test_what_stays_ambiguous_has_no_partner() -> None:
    assert partners("gg", "g", [1]) == [0, 0]
    assert partners("xgx", "agbga", [1, 2, 3, 4, 1]) == [NONE, NONE, NONE]


def test_an_operation_without_a_label_is_a_neighbour_only() -> None:
    assert partners("ngsg", "ngsg", [NONE, 2, NONE, 4]) == [NONE, 1, NONE, 3]


def test_lanes_have_their_own_neighbours() -> None:
    other = sequence("ngsg", "0011")
    mine = sequence("ngsg", "0011")
    assert same_kernels(mine, other, np.array([1, 2, 3, 4])).tolist() == [0, 1, 2, 3]


def test_nothing_to_compare_with() -> None:
    assert partners("ab", "", []) == [NONE, NONE]
    assert partners("", "ab", [1, 2]) == []


@given(st.text("abc", max_size=30))
def test_a_partner_is_the_same_kernel_with_the_only_label_that_fits(text: str) -> None:
    labels = [at // 2 for at in range(len(text))]
    found = partners(text, text, labels)
    for at, partner in enumerate(found):
        assert partner == NONE or (text[partner] == text[at] and labels[partner] == labels[at])


def filled(mine: str, other: str, found: list[int], labels: list[int]) -> list[int]:
    """Upper and lower case are one class."""
    classes = np.array(list(mine.lower()), object), np.array(list(other.lower()), object)
    rows, numbers = np.array(found, np.int64), np.array(labels, np.int64)
    return fill_between(sequence(mine), sequence(other), rows, numbers, classes).tolist()


def test_another_kernel_of_the_class_between_two_matches_is_the_one_that_lies_there() -> None:
    assert filled("nGs", "ngs", [0, NONE, 2], [1, 2, 3]) == [0, 1, 2]


def test_what_lies_between_must_be_the_same_from_both_sides() -> None:
    # One g more on the other side: which of the two is meant?
    assert filled("nGs", "nggs", [0, NONE, 3], [1, 2, 4, 3]) == [0, NONE, 3]
    assert filled("nGs", "nggs", [0, NONE, 3], [1, 2, 2, 3]) == [0, 1, 3]
    assert filled("nGs", "nxs", [0, NONE, 2], [1, 2, 3]) == [0, NONE, 2]


def test_at_an_end_one_side_is_enough() -> None:
    assert filled("Gns", "gns", [NONE, 1, 2], [1, 2, 3]) == [0, 1, 2]
    assert filled("nsG", "nsg", [0, 1, NONE], [1, 2, 3]) == [0, 1, 2]
