"""The same operation in two sequences: by what it is, and by its neighbours where that is not enough."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from warpline.trace.arrays import NONE
from warpline.trace.steps.same_kernels import KernelSequence, aligned, same_kernels


def sequence(text: str, lanes: str = "") -> KernelSequence:
    return KernelSequence(
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


def test_sequences_are_aligned_in_the_order_of_both() -> None:
    def paired(mine: str, other: str) -> list[int]:
        return aligned(np.array([[int(one == two) for two in other] for one in mine], np.int8)).tolist()

    assert paired("abc", "axbc") == [0, 2, 3]
    assert paired("abxc", "abc") == [0, 1, NONE, 2]
    assert paired("ba", "ab") in ([1, NONE], [NONE, 0])
    # Of two kernels of the op, the one with the right name weighs more.
    assert aligned(np.array([[1, 2]], np.int8)).tolist() == [1]
