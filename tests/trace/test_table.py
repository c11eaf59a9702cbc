"""Tables of arrays: columns are those of the stored frame, also for some of the rows, and names are asked once."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpline.trace.arrays import NONE, Bools, Int64s
from warpline.trace.schema import Ops, conform
from warpline.trace.table import Names, filled

NAMES = [None, "aten::mm", "aten::add", "", "aten::mm", None]
STARTS = [3, 1, 4, 1, 5, 9]
PARENTS = [None, 0, 0, None, 3, 3]
WORDS = st.lists(st.one_of(st.none(), st.sampled_from(["cudaLaunchKernel", "cudaFree", "", "x"])), max_size=12)


def ops() -> Ops:
    frame = pl.DataFrame({"name": NAMES, "start_ns": STARTS, "parent": PARENTS, "shapes": ["[1]"] * 6})
    return Ops(conform("ops", frame))


def names_of(words: list[str | None]) -> Names:
    return Names.of(pl.Series(words, dtype=pl.Categorical))


def test_numbers_are_arrays_with_none_where_nothing_was_recorded() -> None:
    assert ops().start_ns.tolist() == STARTS
    assert ops().parent.tolist() == [NONE, 0, 0, NONE, 3, 3]
    assert filled(ops().parent, 7).tolist() == [7, 0, 0, 7, 3, 3]
    with pytest.raises(ValueError, match="read-only"):
        ops().start_ns[0] = 1


@pytest.mark.parametrize(
    "rows", [slice(1, 4), slice(-2, None), np.array([4, 0, 4]), np.array([True, False] * 3), np.zeros(6, bool)]
)
def test_some_rows_are_a_table_with_the_same_columns(rows: Int64s | Bools | slice) -> None:
    chosen = ops()[rows]
    places = np.arange(6)[rows].tolist()
    assert len(chosen) == len(places)
    assert chosen.start_ns.tolist() == [STARTS[row] for row in places]
    assert chosen.name.texts.tolist() == [NAMES[row] or "" for row in places]
    assert chosen.stored["name"].cast(pl.String).to_list() == [NAMES[row] for row in places]
    assert chosen[:1].start_ns.tolist() == [STARTS[row] for row in places[:1]]


def test_other_columns_are_stored_as_the_schema_says() -> None:
    table = ops()
    changed = table.with_columns({"parent": np.array([NONE, NONE, 1, 2, 3, 4]), "name": table.name.renamed(str.upper)})
    assert changed.parent.tolist() == [NONE, NONE, 1, 2, 3, 4]
    assert changed.stored.schema == table.stored.schema
    assert changed.stored["parent"].to_list() == [None, None, 1, 2, 3, 4]
    assert changed.stored["name"].to_list() == [name and name.upper() for name in NAMES]
    assert changed.stored["start_ns"].to_list() == changed.start_ns.tolist() == STARTS
    assert table.parent.tolist() == ops().parent.tolist()


def test_a_table_is_loaded_when_it_is_first_asked_for() -> None:
    loads = []

    def load() -> pl.DataFrame:
        loads.append(1)
        return ops().stored

    table = Ops(load)
    assert not loads
    assert len(table) == len(table[:]) == 6
    assert loads == [1]


@given(WORDS)
def test_names_are_those_of_the_plain_text(words: list[str | None]) -> None:
    names = names_of(words)
    assert names.texts.tolist() == [word or "" for word in words]
    assert [names.text(row) for row in range(len(names))] == words
    assert names.like("^cuda").tolist() == [word is not None and word.startswith("cuda") for word in words]
    assert names.equal("x", "").tolist() == [word in ("x", "") for word in words]
    assert names.numbers(len).tolist() == [NONE if word is None else len(word) for word in words]
    assert names.at(np.array([NONE], np.int64)).text(0) is None


@given(WORDS)
def test_each_name_is_asked_once(words: list[str | None]) -> None:
    asked: list[str] = []
    names_of(words).where(lambda word: bool(asked.append(word)))
    assert sorted(asked) == sorted({word for word in words if word is not None})


def test_rows_keep_the_words_of_their_table_and_know_which_are_present() -> None:
    names = names_of(["a", "b", None, "c"])[2:]
    assert sorted(names.words) == ["a", "b", "c"]
    assert names.present() == ["c"]


def test_new_names_may_be_equal_or_none() -> None:
    names = names_of(["step 2", "load", None, "step 1"])
    renamed = names.renamed(lambda name: name.rstrip("12 ") if name.startswith("step") else None)
    assert renamed.words == ["step"]
    assert renamed.codes.tolist() == [0, NONE, NONE, 0]


def test_names_of_several_columns_have_one_list_of_words() -> None:
    joined = Names.joined([names_of(["b", "a", None]), names_of(["c", "b"])])
    assert joined.texts.tolist() == ["b", "a", "", "c", "b"]
    assert joined.codes[0] == joined.codes[4]
    assert sorted(joined.words) == ["a", "b", "c"]


@given(WORDS)
def test_a_column_that_is_handed_out_has_nulls(words: list[str | None]) -> None:
    assert names_of(words).series().to_list() == words
