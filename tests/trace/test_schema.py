"""Every table is documented, and every trace has exactly the documented columns."""

from __future__ import annotations

import polars as pl
import pytest
from paths import DATA, RECORDINGS

from warpline.trace.open import open_trace
from warpline.trace.schema import TABLES, conform

FILES = RECORDINGS


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_trace_has_exactly_the_documented_columns(file: object) -> None:
    trace = open_trace(str(file))
    for name, columns in TABLES.items():
        assert dict(trace.stored(name).schema) == {column: about.dtype() for column, about in columns.items()}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_times_and_links_are_sane(file: object) -> None:
    trace = open_trace(str(file))
    for name, columns in TABLES.items():
        table = trace.stored(name)
        if "start_ns" in columns:
            assert (table["end_ns"] >= table["start_ns"]).all(), name
    assert trace.stored("gpu")["api_id"].drop_nulls().is_between(0, max(len(trace.api) - 1, 0)).all()
    assert trace.stored("gpu")["op_id"].drop_nulls().is_between(0, max(len(trace.ops) - 1, 0)).all()


def test_every_column_says_what_it_means() -> None:
    assert all(column.meaning for columns in TABLES.values() for column in columns.values())


def test_conform_adds_what_is_missing_and_refuses_what_is_unknown() -> None:
    frame = conform("meta", pl.DataFrame({"value": ["1"]}))
    assert frame.columns == ["key", "value"]
    with pytest.raises(ValueError, match="undocumented"):
        conform("meta", pl.DataFrame({"other": [1]}))


def test_frames_go_to_pandas_and_arrow() -> None:
    trace = open_trace(DATA / "kineto" / "layer_eager.json.gz")
    assert len(trace.gpu.to_pandas()) == len(trace.gpu) == trace.gpu.to_arrow().num_rows
