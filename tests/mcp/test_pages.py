"""Pages of an answer: complete, in order, and small."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpline.errors import UsageError
from warpline.mcp.pages import PAGE_CHARACTERS, encoded, page

LONG = {"schema": "s/1", "rows": [{"name": f"kernel {number}", "text": "x" * 200} for number in range(100)], "last": 1}


def every_page(document: Any, **options: Any) -> list[dict[str, Any]]:
    pages = [page(document, **options)]
    while "cursor" in pages[-1]:
        pages.append(page(document, cursor=pages[-1]["cursor"], **options))
    return pages


def test_a_small_answer_is_one_page_without_a_cursor() -> None:
    assert page({"schema": "s/1", "a": 1, "b": [2]}) == {
        "schema": "warpline.mcp/1",
        "answer": "s/1",
        "parts": {"/a": 1, "/b": [2]},
    }


def test_chosen_parts_come_first() -> None:
    assert list(page({"a": 1, "b": 2, "c": 3}, first=("c", "missing", "b"))["parts"]) == ["/c", "/b", "/a"]


def test_pages_hold_every_part_once_in_order() -> None:
    pages = every_page(LONG)
    ids = [part for one in pages for part in one["parts"]]
    assert ids == [*(f"/rows/{number}" for number in range(100)), "/last"]
    assert pages[0]["left"] == ["/rows", "/last"]
    assert all(len(encoded(one)) <= PAGE_CHARACTERS for one in pages)


def test_an_id_shows_its_part_alone() -> None:
    assert page(LONG, at="/rows/7")["parts"] == {"/rows/7/name": "kernel 7", "/rows/7/text": "x" * 200}
    assert page({"a/b": {"~": 5}}, at="/a~1b/~0")["parts"] == {"/a~1b/~0": 5}


@pytest.mark.parametrize("at", ["rows", "/nothing", "/rows/100", "/rows/-1", "/last/0", "/rows/٣"])
def test_an_id_that_is_not_there_is_refused(at: str) -> None:
    with pytest.raises(UsageError, match="no-such-part"):
        page(LONG, at=at)


@pytest.mark.parametrize("cursor", ["", "x", "1.2.3", "abc.5", ".", "9" * 5000])
def test_a_cursor_of_another_answer_is_refused(cursor: str) -> None:
    other = {**LONG, "last": 2}
    for wrong in (cursor or page(LONG)["cursor"], page(LONG)["cursor"].partition(".")[0] + ".999"):
        with pytest.raises(UsageError, match="stale-cursor"):
            page(other, cursor=wrong)


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=3000),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(max_size=40), inner, max_size=30),
    max_leaves=60,
)


@given(values)
def test_no_page_is_too_long_whatever_the_answer(document: Any) -> None:
    for one in every_page(document):
        assert len(encoded(one)) <= PAGE_CHARACTERS
