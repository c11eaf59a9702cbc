"""Text from a file is shown, never obeyed; it is cut where a reader can follow it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpline.reports.text import cells, fold, plain, shorten, wrap


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[bold]kernel[/red]", "[bold]kernel[/red]"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("two\nlines\tand a tab", "two\\nlines\\tand a tab"),
        ("left\u202eright", "left\\u202eright"),
        ("half \ud800", "half \\ud800"),
        ("ядро 核", "ядро 核"),
    ],
)
def test_what_a_terminal_would_act_on_is_made_visible(text: str, shown: str) -> None:
    assert plain(text) == shown


@given(st.text())
def test_plain_text_is_printable_and_can_be_written(text: str) -> None:
    assert plain(text).isprintable()
    plain(text).encode()


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
