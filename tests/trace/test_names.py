"""Names are asked about once, and every row gets its answer."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpline.trace import names as module
from warpline.trace.names import by_name, matches, named, named_like, names_in, rows_like, texts

WORDS = st.lists(st.one_of(st.none(), st.sampled_from(["cudaLaunchKernel", "cudaFree", "", "x"])), max_size=12)


@given(WORDS)
def test_matching_is_that_of_the_plain_text(words: list[str | None]) -> None:
    column = pl.Series("name", words, dtype=pl.Categorical)
    expected = [word is not None and word.startswith("cuda") for word in words]
    assert matches(column, "^cuda").to_list() == expected
    assert pl.DataFrame({"name": column}).select(named("^cuda")).to_series().to_list() == expected


def test_each_distinct_name_is_seen_once() -> None:
    seen: list[str] = []

    def answer(names: pl.Series) -> pl.Series:
        seen.extend(names)
        return names.str.len_chars()

    column = pl.Series(["a", "bb", None, "a", "bb", "a"], dtype=pl.Categorical)
    assert by_name(column, answer).to_list() == [1, 2, None, 1, 2, 1]
    assert sorted(seen) == ["a", "bb"]


@given(WORDS)
def test_texts_are_the_plain_ones_and_equal_ones_are_the_same_object(words: list[str | None]) -> None:
    found = texts(pl.Series("name", words, dtype=pl.Categorical)).tolist()
    assert found == [word or "" for word in words]
    assert len({id(text) for text in found}) == len(set(found))


@given(WORDS)
def test_a_table_answers_as_its_column_does(words: list[str | None]) -> None:
    table = pl.DataFrame({"name": pl.Series(words, dtype=pl.Categorical), "row": range(len(words))})
    expected = [word is not None and word.startswith("cuda") for word in words]
    assert rows_like(table, "^cuda").tolist() == expected
    assert named_like(table, "^cuda").equals(table.filter(pl.Series(expected, dtype=pl.Boolean)))
    assert names_in(table).texts.tolist() == [word or "" for word in words]


def test_names_are_found_once_and_kept_as_long_as_their_table(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pl.DataFrame({"name": pl.Series(["a", "b"], dtype=pl.Categorical)})
    assert names_in(table) is names_in(table)
    kept = set(module._kept)
    del table
    assert set(module._kept) < kept
    monkeypatch.setattr(module, "KEPT_ROWS", 1)
    long = pl.DataFrame({"name": pl.Series(["a", "b"], dtype=pl.Categorical)})
    assert names_in(long) is not names_in(long)
    assert id(long) not in module._kept
