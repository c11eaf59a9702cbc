"""Tables fit their width, keep the column that names the row, and say what they leave out."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpline.reports.layout import Cells, distinct, lay_out, left_out_note
from warpline.reports.text import cells

NAMES = [f"void at::native::elementwise_kernel<{128 << row}, long template arguments>(int)" for row in range(4)]


def columns(names: list[str] = NAMES) -> list[Cells]:
    numbers = [f"{1000 * row:,} ms" for row in range(len(names))]
    spread = [
        Cells(title, numbers, is_right=True, priority=rank) for rank, title in enumerate(["total", "median", "std"], 1)
    ]
    return [*spread, Cells("kernel", names, is_key=True, can_shrink=True)]


def test_without_a_width_nothing_is_left_out_or_shortened() -> None:
    laid = lay_out(columns(), None)
    assert laid.left_out == ()
    assert [line.split("  ")[-1] for line in laid.lines] == NAMES


@pytest.mark.parametrize(("width", "left_out"), [(100, ()), (60, ()), (46, ("std",)), (38, ("median", "std"))])
def test_columns_go_by_priority_and_the_key_stays(width: int, left_out: tuple[str, ...]) -> None:
    laid = lay_out(columns(), width)
    assert laid.left_out == left_out
    assert "kernel" in laid.head
    assert max(map(len, [laid.head, *laid.lines])) <= width


@pytest.mark.parametrize("width", [10, 20, 40, 80, 120])
def test_no_line_is_too_wide_and_none_ends_with_a_space(width: int) -> None:
    laid = lay_out(columns(), width)
    lines = [laid.head, *laid.lines]
    assert all(line == line.rstrip() for line in lines)
    assert max(map(len, lines)) <= width


def test_the_note_names_what_is_left_out() -> None:
    assert left_out_note(["median", "std"], 80) == "no room for median, std in 80 columns"
    assert left_out_note([], 80) == ""


def test_numbers_are_never_cut() -> None:
    text = "\n".join(lay_out(columns(), 38).lines)
    assert re.findall(r"\S+ ms", text) == ["0 ms", "1,000 ms", "2,000 ms", "3,000 ms"]


def test_two_keys_share_the_room() -> None:
    pair = [Cells("range", NAMES, is_key=True, can_shrink=True), Cells("kernel", NAMES, is_key=True, can_shrink=True)]
    laid = lay_out([*pair, Cells("total", ["1 ms"] * 4, is_right=True)], 60)
    assert max(map(len, laid.lines)) <= 60
    assert laid.head.split() == ["range", "kernel", "total"]
    assert laid.head.index("kernel") > 20


def test_keys_that_differ_only_in_their_middle_can_be_told_apart() -> None:
    names = [f"{'a' * 50}{row}{'b' * 50}" for row in range(10)]
    short = distinct(names, 40)
    assert len(set(short.values())) == 10
    assert all(len(text) <= 40 for text in short.values())


@given(st.sets(st.text(st.characters(codec="ascii", categories=["L"]), min_size=1), max_size=8), st.integers(1, 30))
def test_shortened_keys_stay_different(names: set[str], room: int) -> None:
    assert len(set(distinct(sorted(names), room).values())) == len(names)


def test_wide_characters_are_counted_as_two_columns() -> None:
    laid = lay_out([Cells("name", ["核核", "ab"], is_key=True), Cells("n", ["1", "2"], is_right=True)], None)
    assert [cells(line) for line in laid.lines] == [7, 7]


def test_prose_is_wrapped_and_never_shortened() -> None:
    words = "the CPU could not launch kernels fast enough for this GPU"
    prose = Cells("meaning", [words], can_shrink=True, is_prose=True)
    laid = lay_out([Cells("part", ["dispatch"], is_key=True), prose], 40)
    assert " ".join(" ".join(laid.lines).split()) == f"dispatch {words}"
