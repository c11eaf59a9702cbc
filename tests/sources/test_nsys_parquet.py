"""An nsys export as a folder of Parquet files says what the SQLite export says."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import polars as pl
import pytest
from nsys_files import small

from warpline.cli.main import run
from warpline.errors import UnreadableFile
from warpline.sources.detect import detect
from warpline.sources.kinds import DIRECTORY
from warpline.sources.nsys import NSYS_PARQUET
from warpline.trace.open import open_trace, profiles_in
from warpline.trace.schema import TABLES

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL.parquet"


def exported(tmp_path: Path, name: str = "report1_pqtdir") -> Path:
    """The small export, one file for each table with rows."""
    folder = tmp_path / name
    folder.mkdir()
    database = sqlite3.connect(small().write(tmp_path / "report1.export"))
    for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        cursor = database.execute(f'SELECT * FROM "{table}"')
        columns = [column[0] for column in cursor.description]
        if rows := cursor.fetchall():
            frame = pl.DataFrame(rows, schema=columns, orient="row", infer_schema_length=None)
            frame.write_parquet(folder / f"{table}.parquet")
    database.close()
    return folder


def test_every_table_is_that_of_the_sqlite_export(tmp_path: Path) -> None:
    folder = exported(tmp_path)
    assert detect(folder) is NSYS_PARQUET
    mine, other = open_trace(folder, cache=False), open_trace(tmp_path / "report1.export", cache=False)
    assert len(mine.gpu) == 4
    for table in TABLES:
        assert mine.tables[table].stored.equals(other.tables[table].stored), table


def test_it_is_one_profile_of_the_folder_around_it(tmp_path: Path) -> None:
    folder = exported(tmp_path)
    assert profiles_in(tmp_path) == [folder]
    assert open_trace(tmp_path, cache=False).file == folder
    (tmp_path / "empty_pqtdir").mkdir()
    assert profiles_in(tmp_path) == [folder]
    assert detect(tmp_path / "empty_pqtdir") is DIRECTORY


def test_the_answer_is_that_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diagnose", str(exported(tmp_path, "any name"))]) == 0
    assert "any name" in capsys.readouterr().out


def test_numbers_of_other_widths_and_texts_in_their_place(tmp_path: Path) -> None:
    file = exported(tmp_path) / KERNELS
    frame = pl.read_parquet(file)
    changed = frame.with_columns(pl.col("start", "end").cast(pl.UInt64), pl.col("deviceId").cast(pl.UInt8))
    changed.with_columns(pl.lit("many").alias("registersPerThread")).write_parquet(file)
    kernels = open_trace(file.parent, cache=False).gpu.stored.filter(pl.col("kind").cast(pl.String) == "kernel")
    assert (kernels["end_ns"] - kernels["start_ns"]).to_list() == [30, 5]
    assert kernels["device"].to_list() == [0, 0]
    assert kernels["registers"].null_count() == 2


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + bytes(100) + b"PAR1", b"no Parquet at all"])
def test_a_damaged_table_is_named_and_the_others_are_read(content: bytes, tmp_path: Path) -> None:
    file = exported(tmp_path) / KERNELS
    file.write_bytes(content)
    trace = open_trace(file.parent, cache=False)
    assert len(trace.gpu) == 2  # the copy and the memset
    (entry,) = [entry for entry in trace.health_entries if entry.code == "damaged-table"]
    assert "CUPTI_ACTIVITY_KIND_KERNEL" in entry.message


def test_a_table_that_is_cut_short_is_named(tmp_path: Path) -> None:
    file = exported(tmp_path) / KERNELS
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    assert "damaged-table" in {entry.code for entry in open_trace(file.parent, cache=False).health_entries}


def test_a_table_with_more_rows_than_its_bytes_can_hold_is_named(tmp_path: Path) -> None:
    """A million equal rows take a few kilobytes; real rows differ at least in their times."""
    file = exported(tmp_path) / KERNELS
    pl.concat([pl.read_parquet(file)[:1]] * 1000).sample(1_000_000, with_replacement=True).write_parquet(file)
    trace = open_trace(file.parent, cache=False)
    assert len(trace.gpu) == 2  # the copy and the memset
    (entry,) = [entry for entry in trace.health_entries if entry.code == "damaged-table"]
    assert "more rows than fit" in entry.message


def test_a_folder_of_nothing_but_damage_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = exported(tmp_path)
    for file in folder.iterdir():
        file.write_bytes(b"PAR1")
    assert run(["diagnose", str(folder)]) == 1
    line = capsys.readouterr().err
    assert line.startswith("warpline: damaged-file: ")
    assert line.count("\n") == 1


def test_a_single_table_is_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="give the folder"):
        open_trace(exported(tmp_path) / KERNELS, cache=False)


@pytest.mark.parametrize("name", ["run[1]", "run*", "{run}?"])
def test_the_name_of_a_folder_is_no_pattern(name: str, tmp_path: Path) -> None:
    (tmp_path / "run1").mkdir()
    (tmp_path / "run1" / KERNELS).write_bytes(b"of another folder")
    assert len(open_trace(exported(tmp_path, name), cache=False).gpu) == 4


def test_a_pipe_or_a_folder_in_the_place_of_a_table_is_damage(tmp_path: Path) -> None:
    folder = exported(tmp_path)
    os.mkfifo(folder / "A_PIPE.parquet")
    (folder / "A_FOLDER.parquet").mkdir()
    found = open_trace(folder, cache=False)
    assert len(found.gpu) == 4
    said = " ".join(entry.message for entry in found.health_entries)
    assert "A_PIPE" in said and "A_FOLDER" in said and "no regular file" in said
