"""Every table is documented, and every trace has exactly the documented columns."""

from __future__ import annotations

import polars as pl
import pytest
from paths import DATA, RECORDINGS

from warpline.errors import WarplineError
from warpline.trace.arrays import NONE
from warpline.trace.open import open_trace
from warpline.trace.schema import TABLES, conform

FILES = RECORDINGS


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_trace_has_exactly_the_documented_columns(file: object) -> None:
    trace = open_trace(str(file))
    for name, table in TABLES.items():
        assert dict(trace.tables[name].stored.schema) == {
            column: about.dtype() for column, about in table.columns.items()
        }


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_times_and_links_are_sane(file: object) -> None:
    trace = open_trace(str(file))
    for name, table in TABLES.items():
        if "start_ns" in table.columns:
            stored = trace.tables[name].stored
            assert (stored["end_ns"] >= stored["start_ns"]).all(), name
    gpu = trace.gpu
    assert ((gpu.api_id >= NONE) & (gpu.api_id < len(trace.api))).all()
    assert ((gpu.op_id >= NONE) & (gpu.op_id < len(trace.ops))).all()


def test_every_column_says_what_it_means() -> None:
    assert all(column.meaning for table in TABLES.values() for column in table.columns.values())


def test_conform_adds_what_is_missing_and_refuses_what_is_unknown() -> None:
    frame = conform("meta", pl.DataFrame({"value": ["1"]}))
    assert frame.columns == ["key", "value"]
    with pytest.raises(WarplineError, match=r"the table gpu has no column 'start', .* did you mean start_ns"):
        conform("gpu", pl.DataFrame({"start": [1]}))


def test_frames_go_to_pandas_and_arrow() -> None:
    gpu = open_trace(DATA / "kineto" / "layer_eager.json.gz").gpu.stored
    assert len(gpu.to_pandas()) == len(gpu) == gpu.to_arrow().num_rows
