"""Whatever a reader yields, the schema holds afterwards."""

from __future__ import annotations

import math
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kineto_files import call, kernel, op, write
from nsys_files import GLOBAL_TID, Export

from warpline.sources.health import HealthEntry
from warpline.sources.kineto import read_kineto
from warpline.sources.rows import FAR_NS, Rows
from warpline.trace.column_rules import NAME_CHARS, NO_NAME, TEXT_CHARS, UNKNOWN
from warpline.trace.open import build, open_trace
from warpline.trace.repair import guarantee, guaranteed, shortened
from warpline.trace.schema import TABLES

READ = [name for name in TABLES if name not in {"steps", "meta", "health", "long_names"}]
LONG = "k" * (NAME_CHARS + 1)
INTEGERS = [None, 0, 1, 3, -1, 700, 2**31, -(2**31), 2**44, 2**61, 2**63 - 1, -(2**63), FAR_NS, 3 * FAR_NS]
TEXTS = [None, "", "gpu", "kernel", "a\x1b[31mb", "\x00", "[1, 2]", LONG, LONG + "2"]
FLOATS = [None, 0.0, 1.5, math.nan, math.inf, -math.inf]
META = ["", "\ud800", "plain", LONG]


def odd_frame(name: str, random: Random) -> pl.DataFrame:
    """Rows of one table, with any value that the columns' types can hold; some columns are left out."""
    rows = random.randrange(5)
    columns: dict[str, pl.Series] = {}
    for column, rule in TABLES[name].columns.items():
        texts, fraction = rule.dtype in (pl.Categorical, pl.String), rule.dtype is pl.Float64
        values: list[Any] = TEXTS if texts else FLOATS if fraction else INTEGERS
        kind: Any = pl.String if texts else pl.Float64 if fraction else pl.Int64
        if random.random() < 0.8:
            columns[column] = pl.Series([random.choice(values) for _ in range(rows)], dtype=kind)
    return pl.DataFrame(columns)


def odd_rows(random: Random) -> Rows:
    """What a reader might yield for a hostile file."""
    tables = {name: odd_frame(name, random) for name in READ if random.random() < 0.6}
    return Rows("kineto", tables, {random.choice(META): random.choice(META)})


def assert_schema_holds(tables: dict[str, pl.DataFrame], threads: int) -> None:
    for name in READ:
        table = tables[name]
        assert table.columns == list(TABLES[name].columns)
        for column, rule in TABLES[name].columns.items():
            series = table[column]
            assert series.dtype == rule.dtype
            assert not (rule.required and series.null_count()), f"{name}.{column}"
            known = series.drop_nulls()
            if rule.bounds is not None:
                assert known.is_between(rule.bounds.least, rule.bounds.most).all()
            if rule.dtype is pl.Float64:
                assert known.is_finite().all()
            if rule.dtype in (pl.Categorical, pl.String):
                assert (known.cast(pl.String).str.len_chars() <= rule.most_chars).all()
        if "end_ns" in table.columns:
            length = table["end_ns"] - table["start_ns"]
            assert length.drop_nulls().is_between(0, FAR_NS).all()
        for column in {"thread", "end_thread"} & set(table.columns):
            assert (table[column].drop_nulls() < threads).all()
    assert tables["devices"]["device"].drop_nulls().is_unique().all()
    on_cpu = tables["ranges"].filter(pl.col("style").cast(pl.String) != "gpu")
    assert not on_cpu["thread"].null_count()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32))
def test_the_schema_holds_for_any_rows_and_the_trace_can_be_built(seed: int) -> None:
    rows = odd_rows(Random(seed))
    tables, repairs = guarantee(rows)
    assert_schema_holds(tables, len(tables["threads"]))
    for text in [*rows.meta, *rows.meta.values()]:
        text.encode()
        assert len(text) <= NAME_CHARS
    assert all(isinstance(entry, HealthEntry) for entry in repairs.health())
    build(Path("any.json"), odd_rows(Random(seed)))


def test_possible_rows_are_unchanged() -> None:
    gpu = pl.DataFrame({"kind": ["kernel"], "name": ["k"], "start_ns": [5], "end_ns": [9], "device": [0], "bytes": [7]})
    ranges = pl.DataFrame({"name": ["open"], "style": ["pushpop"], "thread": [0], "start_ns": [1]})
    threads = pl.DataFrame({"tid": [3]})
    tables, repairs = guarantee(Rows("kineto", {"gpu": gpu, "ranges": ranges, "threads": threads}))
    assert tables["gpu"].select("name", "start_ns", "end_ns", "device", "bytes").rows() == [("k", 5, 9, 0, 7)]
    assert tables["ranges"].select("thread", "end_ns").rows() == [(0, None)]
    assert len(tables["threads"]) == 1
    assert repairs.health() == []


def test_each_repair_is_counted() -> None:
    gpu = pl.DataFrame(
        {
            "kind": ["kernel"] * 5,
            "name": [None, "a", LONG, "far", "timeless"],
            "start_ns": [10, 20, 30, 3 * FAR_NS, None],
            "end_ns": [15, 19, 35, 3 * FAR_NS + 1, 2],
            "bytes": [-1, 5, 2**60, 0, 0],
        }
    )
    osrt = pl.DataFrame({"name": ["poll"], "start_ns": [1], "end_ns": [2]})
    ops = pl.DataFrame(
        {"name": ["aten::mm"], "thread": [0], "start_ns": [1], "end_ns": [2], "shapes": ["[" * (TEXT_CHARS + 1)]}
    )
    tables, repairs = guarantee(
        Rows("nsys", {"gpu": gpu, "osrt": osrt, "ops": ops, "threads": pl.DataFrame({"tid": [1]})})
    )
    short = shortened(LONG)
    assert tables["gpu"].select(pl.col("name").cast(pl.String), "start_ns", "end_ns", "bytes").rows() == [
        (NO_NAME, 10, 15, None),
        ("a", 20, 20, 5),
        (short, 30, 35, None),
    ]
    assert tables["osrt"]["thread"].to_list() == [1]
    assert tables["threads"]["name"].to_list() == [None, UNKNOWN]
    assert tables["ops"]["shapes"].to_list() == [None]
    assert tables["long_names"].rows() == [(short, LONG)]
    assert {entry.code for entry in repairs.health()} == {
        "impossible-time",
        "negative-duration",
        "impossible-values",
        "missing-values",
        "long-arguments",
        "long-names",
    }
    assert (repairs.impossible_times["gpu"], repairs.negative["gpu"]) == (2, 1)
    assert repairs.missing == {"gpu.name": 1, "osrt.thread": 1}


def test_shortened_names_differ_where_the_names_differ_and_keep_both_ends() -> None:
    middle = NAME_CHARS * 3
    first, second = ("a" * middle + letter + "z" * middle for letter in "xy")
    assert shortened(first) != shortened(second)
    assert len(shortened(first)) == NAME_CHARS
    assert shortened(first).startswith("aaa")
    assert shortened(first).endswith("zzz")
    assert shortened("k" * NAME_CHARS) == "k" * NAME_CHARS


def test_a_table_beside_the_trace_is_checked_the_same_way() -> None:
    flow = guaranteed("dataflow", pl.DataFrame({"call": [0, None], "op": [None, "aten::mm"], "elements": [-4, 2]}))
    assert flow.select("call", pl.col("op").cast(pl.String), "elements").rows() == [(0, NO_NAME, None)]


@pytest.mark.parametrize("scanner", ["native", "python"])
def test_a_kineto_file_with_nulls_and_half_pairs_keeps_the_schema(tmp_path: Path, scanner: Any) -> None:
    events = [
        op("x", 0, 10, external=1) | {"name": None},
        op("y\ud800", 20, 10, external=2) | {"tid": None},
        op("z", 40, 10) | {"pid": None, "args": {"Input Dims": "\udfff"}},
        call("cudaLaunchKernel", 2, 1, 1) | {"name": 7},
        kernel(LONG, 5, 10, 1, device=2**40),
        {"ph": "M", "name": "thread_name", "pid": 100, "tid": 100, "args": {"name": "t\ud800"}},
        {"ph": "M", "name": "process_name", "pid": 100, "args": {"name": None}},
    ]
    properties = [{"id": 0, "name": "GPU \ud800", "numSms": 0}, {"id": None, "name": 5}]
    path = write(tmp_path, events, deviceProperties=properties, with_stack="\udc00", distributedInfo={"rank": "\ud9ff"})
    trace = build(path, read_kineto(path, scanner))
    assert_schema_holds({name: trace.tables[name].stored for name in READ}, len(trace.threads))
    assert trace.devices.stored.select("device", "name", "sm_count").rows() == [
        (0, "GPU \ufffd", None),
        (None, None, None),
    ]
    assert trace.facts["rank"] == "\ufffd"
    assert trace.ops.stored["name"].cast(pl.String).to_list() == [NO_NAME, "y\ufffd", "z"]
    assert trace.long_names.stored["whole"].to_list() == [LONG]
    assert {"long-names", "missing-values"} <= {entry.code for entry in trace.health_entries}


def test_an_nsys_file_with_nulls_keeps_the_schema(tmp_path: Path) -> None:
    export = Export().kernel(10, 20, "k").call(5, 6, "cudaLaunchKernel").range(0, 30, None)
    export.add("OSRT_API", start=1, end=2, nameId=None, globalTid=None)
    export.add("OSRT_API", start=3, end=4, nameId=99, globalTid=GLOBAL_TID)
    export.kernel(2**60, 2**60 + 5, "late", demangledName=None, gridX=2**40, staticSharedMemory=-5)
    export.call(7, 8, "cudaFree", nameId=None, eventClass=12, globalTid=None)
    trace = open_trace(export.write(tmp_path / "odd.sqlite"), cache=False)
    assert_schema_holds({name: trace.tables[name].stored for name in READ}, len(trace.threads))
    assert trace.osrt.stored["name"].cast(pl.String).to_list() == [NO_NAME, NO_NAME]
    assert trace.threads.stored["name"][-1] == UNKNOWN
    assert len(trace.gpu) == 1
