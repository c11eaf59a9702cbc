"""Names as codes into words: joined, renamed, and as a column that is handed out."""

from __future__ import annotations

import numpy as np

from warpline.trace.arrays import NONE
from warpline.trace.table import Names, Words


def names(*texts: str | None) -> Names:
    words = sorted({text for text in texts if text is not None})
    return Names(Words(words), np.array([NONE if text is None else words.index(text) for text in texts], np.int64))


def test_names_of_several_columns_have_one_list_of_words() -> None:
    joined = Names.joined([names("b", "a", None), names("c", "b")])
    assert joined.texts.tolist() == ["b", "a", "", "c", "b"]
    assert joined.codes[0] == joined.codes[4]
    assert sorted(joined.words) == ["a", "b", "c"]


def test_names_that_become_equal_are_one() -> None:
    renamed = names("mm_1", "mm_2", None, "add").renamed(lambda name: name.split("_")[0])
    assert renamed.texts.tolist() == ["mm", "mm", "", "add"]
    assert renamed.codes[0] == renamed.codes[1] != renamed.codes[3]
    assert renamed.codes[2] == NONE


def test_a_column_that_is_handed_out_has_nulls() -> None:
    assert names("b", None, "a").series().to_list() == ["b", None, "a"]
    assert len(names().series()) == 0
