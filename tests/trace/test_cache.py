"""A second open gives the same trace from the cache, and no state of the cache can break an open."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import polars as pl
import pytest
from paths import DATA

from warpline.sources import cache_folder
from warpline.sources.cache_folder import Content, traces_folder
from warpline.trace import open as opening
from warpline.trace.open import open_trace
from warpline.trace.schema import TABLES

FILE = DATA.parents[1] / "src" / "warpline" / "data" / "demo.json.xz"


def no_reading(*_: object) -> None:
    raise AssertionError("the file was read again")


def entry_of(file: Path) -> Path:
    return traces_folder() / Content.of(file).key


def test_a_second_open_reads_the_cache_and_gives_the_same_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    first = open_trace(FILE)
    monkeypatch.setattr(opening, "_read", no_reading)
    second = open_trace(FILE)
    for table in TABLES:
        assert first.tables[table].stored.equals(second.tables[table].stored), table
        assert first.tables[table].stored.schema == second.tables[table].stored.schema


def test_no_cache_leaves_no_trace() -> None:
    open_trace(FILE, cache=False)
    assert not traces_folder().exists()


def test_the_key_follows_the_content_not_the_name(tmp_path: Path) -> None:
    content = FILE.read_bytes()
    one, same, other = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    one.write_bytes(content)
    same.write_bytes(content)
    middle = len(content) // 2 + 77
    other.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    assert Content.of(one).key == Content.of(same).key != Content.of(other).key


SAME_CRC = (1 | 0xEDB88320 << 1).to_bytes(5, "little")
"""The polynomial of CRC-32, which can be added anywhere without a change of the checksum."""


def test_a_file_that_is_forged_to_have_the_same_checksum_has_another_key(tmp_path: Path) -> None:
    content = bytearray(8 << 20)
    one, forged = tmp_path / "a", tmp_path / "b"
    one.write_bytes(content)
    content[100_000 : 100_000 + len(SAME_CRC)] = SAME_CRC
    forged.write_bytes(content)
    assert zlib.crc32(one.read_bytes()) == zlib.crc32(forged.read_bytes())
    assert Content.of(one).key != Content.of(forged).key


def test_a_file_that_changes_within_a_process_gets_another_key_even_if_its_time_is_set_back(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(bytes(100_000))
    state, before = file.stat(), Content.of(file).key
    file.write_bytes(bytes(99_999) + b"1")
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert Content.of(file).key != before


def test_an_entry_of_another_polars_is_rebuilt() -> None:
    expected = open_trace(FILE).gpu.stored
    manifest = entry_of(FILE) / "manifest.json"
    manifest.write_text(manifest.read_text().replace(pl.__version__, "0.0.1"))
    assert open_trace(FILE).gpu.stored.equals(expected)
    assert pl.__version__ in manifest.read_text()


@pytest.mark.parametrize("damage", ["cut", "flip", "missing", "manifest", "garbage-manifest"])
def test_a_damaged_entry_is_rebuilt_silently(damage: str) -> None:
    expected = open_trace(FILE).gpu.stored
    entry = entry_of(FILE)
    table = entry / "gpu.arrow"
    if damage == "cut":
        table.write_bytes(table.read_bytes()[:100])
    elif damage == "flip":
        content = bytearray(table.read_bytes())
        content[len(content) // 2] ^= 0xFF
        table.write_bytes(content)
    elif damage == "missing":
        table.unlink()
    elif damage == "manifest":
        (entry / "manifest.json").write_text('{"tables": 3}')
    else:
        (entry / "manifest.json").write_bytes(b"\xff\xfe")
    assert open_trace(FILE).gpu.stored.equals(expected)
    assert open_trace(FILE).gpu.stored.equals(expected)


def test_an_unwritable_cache_is_no_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("WARPLINE_CACHE", str(blocked))
    assert len(open_trace(FILE).gpu)


def test_the_cache_is_bounded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cache_folder, "SMALL_FILE_BYTES", 0)
    names = ["layer_eager", "compiled", "block_fp32"]
    open_trace(DATA / "kineto" / f"{names[0]}.json.gz")
    one = sum(file.stat().st_size for file in traces_folder().rglob("*.arrow"))
    monkeypatch.setenv("WARPLINE_CACHE_BYTES", str(int(1.5 * one)))
    for name in names[1:]:
        open_trace(DATA / "kineto" / f"{name}.json.gz")
    assert sum(file.stat().st_size for file in traces_folder().rglob("*")) <= 1.6 * one
    assert entry_of(DATA / "kineto" / f"{names[-1]}.json.gz").exists()
