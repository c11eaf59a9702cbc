"""Text is cut where a reader can follow it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from warpline.reports.text import cells, fold, shorten, wrap


def test_wide_characters_take_two_columns() -> None:
    assert cells("核a") == 3
    assert shorten("核核核核", 5) == "核…核"


@given(st.text(st.characters(codec="utf-8", categories=["L", "N", "P"]), min_size=1), st.integers(2, 40))
def test_no_line_is_wider_than_its_room_and_no_character_is_lost(text: str, room: int) -> None:
    for lines in (fold(text, room), wrap(text, room)):
        assert all(cells(line) <= room for line in lines)
        assert "".join(lines) == text


def test_names_break_at_a_space_near_the_end_of_the_line() -> None:
    assert fold("aten::_item cudaStreamSynchronize", 20) == ["aten::_item", "cudaStreamSynchroniz", "e"]
    assert fold("a bcdefghijk", 8) == ["a bcdefg", "hijk"]


def test_a_number_stays_with_its_unit() -> None:
    assert wrap("the step takes 7.92 ms", 19) == ["the step takes", "7.92 ms"]


def test_an_empty_text_is_one_empty_line() -> None:
    assert wrap("", 10) == [""]
    assert fold("", 10) == [""]
