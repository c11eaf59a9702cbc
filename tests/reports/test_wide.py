"""Tables that fit: which columns stay, and what is cut."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpline.reports.wide import wide_table_text

HOW = "see all"


def lines(frame: pl.DataFrame, width: int) -> list[str]:
    return wide_table_text(frame, width, HOW).splitlines()


def test_a_table_that_fits_is_shown_as_it_is() -> None:
    frame = pl.DataFrame({"n": [1, 20], "text": ["one", None]})
    assert lines(frame, 80) == [" n text", " 1 one", "20"]


def test_keys_stay_and_columns_without_a_value_go_first() -> None:
    frame = pl.DataFrame(
        {"empty": [None], "grid": [123456], "end_ns": [20], "start_ns": [10], "name": ["k"], "id": [0]}
    )
    assert lines(frame, 24) == ["end_ns start_ns name id", "    20       10 k     0", f"(2 of 6 columns hidden; {HOW})"]


def test_long_texts_are_cut_in_the_middle_and_numbers_never() -> None:
    frame = pl.DataFrame({"name": ["begin" + "x" * 100 + "end"], "value": [12345678901]})
    title, row = lines(frame, 40)
    assert len(row) == 40
    assert row.startswith("begin") and "…" in row and row.endswith("end 12345678901")
    assert title.endswith("value")


def test_lines_of_a_text_stay_on_one_line() -> None:
    assert lines(pl.DataFrame({"name": ["a\nb\tc"]}), 80) == ["name", "a b c"]


def test_lists_and_no_rows_can_be_shown() -> None:
    assert lines(pl.DataFrame({"all": [[1, 2]]}), 80) == ["all", "[1, 2]"]
    assert lines(pl.DataFrame({"a": [], "b": []}), 80) == ["a b"]


@given(
    st.lists(
        st.tuples(st.text("abc_", min_size=1, max_size=12), st.text(max_size=60)),
        min_size=1,
        max_size=12,
        unique_by=lambda pair: pair[0],
    ),
    st.integers(30, 200),
)
def test_nothing_is_wider_than_asked_for(columns: list[tuple[str, str]], width: int) -> None:
    frame = pl.DataFrame({name: [value] for name, value in columns}, schema=dict.fromkeys(dict(columns), pl.String))
    assert all(len(line) <= width for line in lines(frame, width) if not line.startswith("("))


@pytest.mark.parametrize("width", [1, 5])
def test_one_column_is_always_there(width: int) -> None:
    assert lines(pl.DataFrame({"id": [7], "name": ["k"]}), width)[0].split()[0] == "id"
