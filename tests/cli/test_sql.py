"""`warpline sql` as a user meets it: joins, text, and tables that fit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from paths import DATA

from warpline.cli.main import run
from warpline.reports.layout import LISTED_TITLES
from warpline.trace.schema import TABLES

KINETO = str(DATA / "kineto" / "layer_eager.json.gz")
JOINED = (
    "select api.name, count(*) n from gpu join api on gpu.api_id = api.id where gpu.kind like 'mem%' group by api.name"
)


def test_rows_join_on_ids_and_text_is_matched(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sql", KINETO, JOINED, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"name": "cudaMemsetAsync", "n": 45}]


@pytest.mark.parametrize("width", [40, 80, 100])
@pytest.mark.parametrize("table", ["gpu", "api", "ops"])
def test_a_wide_table_fits_and_says_what_is_hidden(
    table: str, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert run(["sql", KINETO, f"select * from {table}"]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert all(len(line) <= width and line == line.rstrip() for line in lines)
    shown = lines[0].split()
    assert {"id", "name"} <= set(shown)
    hidden = len(TABLES[table].columns) + 1 - len(shown)
    assert last.startswith("(no room for ")
    if hidden > LISTED_TITLES:
        assert last == f"(no room for {hidden} more columns in {width}; --format csv or --format json shows them all)"
    else:
        assert last.count(",") == hidden - 1


@pytest.mark.parametrize("columns", ["60", "80"])
def test_the_meaning_of_a_column_is_never_cut(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert run(["sql", KINETO]) == 0
    assert "…" not in capsys.readouterr().out


def test_csv_has_every_column(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sql", KINETO, "select * from gpu limit 1", "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[0].split(",") == ["id", *TABLES["gpu"].columns]


def test_a_bad_query_names_the_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sql", KINETO, "select * from kernels"]) == 2
    assert "bad-query" in (said := capsys.readouterr().err)
    assert "tables: gpu, api" in said


@pytest.mark.parametrize("function", ["read_csv", "READ_CSV", "read_parquet", "read_json", "read_ipc", '"read_csv"'])
@pytest.mark.parametrize("before", ["", "select 1; ", "create table x as ", "/* ' */ ", "\n-- '\n"])
def test_a_query_reads_no_other_file(
    function: str, before: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.csv"
    other.write_text("word\nsecret\n")
    trace = tmp_path / "trace.json"
    trace.write_text('{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 2}]}')
    query = f"{before}select * from {function}/**/('{other}')"
    assert run(["sql", str(trace), query, "--format", "csv", "--no-cache"]) == 2
    out, err = capsys.readouterr()
    assert "secret" not in out + err
    assert err.startswith("warpline: bad-query: ")


def test_fractions_keep_their_digits(capsys: pytest.CaptureFixture[str]) -> None:
    query = "select avg(end_ns - start_ns) / 1e9 as s, avg(end_ns - start_ns) / 3 as thirds_ns from gpu where kind = 'memset'"
    assert run(["sql", KINETO, query]) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["9.345e-07", "311.5"]
    assert run(["sql", KINETO, query, "--format", "csv"]) == 0
    assert float(capsys.readouterr().out.splitlines()[1].split(",")[1]) * 3e-9 == pytest.approx(
        42_051e-9 / 45, rel=1e-12
    )
