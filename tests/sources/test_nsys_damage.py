"""Damaged, hostile and foreign files: rows with a health entry, or one clear error; never anything else."""

from __future__ import annotations

import gzip
import random
import sqlite3
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nsys_files import GLOBAL_PID, GLOBAL_TID, Export, small

from warpline.errors import UnreadableFile, UsageError, WarplineError
from warpline.sources.nsys import read_nsys
from warpline.sources.rows import Rows
from warpline.trace.schema import conform


def outcome(path: Path) -> Rows | WarplineError:
    """What reading gives; anything but rows or an error of ours escapes."""
    try:
        rows = read_nsys(path)
    except WarplineError as error:
        assert "\n" not in error.line()
        return error
    for name, frame in rows.tables.items():
        conform(name, frame)
    return rows


def large() -> Export:
    """Enough rows that tables span many pages."""
    export = small()
    for index in range(1500):
        start = 1000 + 100 * index
        export.call(start, start + 5, "cudaLaunchKernel_v7000", 100 + index)
        export.kernel(start + 10, start + 50, f"kernel_{index % 40}<float>", 100 + index)
    return export


@pytest.fixture(scope="module")
def large_bytes(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return large().write(tmp_path_factory.mktemp("large") / "export.sqlite").read_bytes()


@pytest.fixture(scope="module")
def small_bytes(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return small().write(tmp_path_factory.mktemp("small") / "export.sqlite").read_bytes()


def test_a_truncated_file_is_read_up_to_the_damage(large_bytes: bytes, tmp_path: Path) -> None:
    path = tmp_path / "cut.sqlite"
    path.write_bytes(large_bytes[: len(large_bytes) * 3 // 4])
    rows = outcome(path)
    assert isinstance(rows, Rows)
    codes = {entry.code: entry for entry in rows.health}
    assert codes["truncated-file"].severity == "error"
    assert f"of {len(large_bytes)} bytes" in codes["truncated-file"].message
    assert "damaged-table" in codes
    assert any(frame.height > 0 for name, frame in rows.tables.items() if name in ("gpu", "api"))


def test_a_truncated_gzip_is_read_up_to_the_damage(large_bytes: bytes, tmp_path: Path) -> None:
    path = tmp_path / "cut.sqlite.gz"
    packed = gzip.compress(large_bytes)
    path.write_bytes(packed[: len(packed) * 9 // 10])
    rows = outcome(path)
    assert isinstance(rows, Rows)
    assert rows.health[0].code == "truncated-file"


def test_a_gzip_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"SQLite format 3\x00" + bytes(50_000_000), 9))
    monkeypatch.setenv("WARPLINE_MAX_BYTES", "1000000")
    with pytest.raises(UnreadableFile, match="more than 1,000,000 bytes") as caught:
        read_nsys(path)
    assert caught.value.code == "too-large"
    monkeypatch.setenv("WARPLINE_MAX_BYTES", "many")
    with pytest.raises(UsageError, match="WARPLINE_MAX_BYTES"):
        read_nsys(path)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "empty-file"),
        (bytes(8192), "damaged-file"),
        (b"SQLite format 3\x00", "damaged-file"),
        (b"SQLite format 3\x00" + random.Random(1).randbytes(20_000), "damaged-file"),
        (b"SQLite for", "damaged-file"),
        (b"hello, world\n" * 100, "not-sqlite"),
        (gzip.compress(b"hello", mtime=0), "not-sqlite"),
        (gzip.compress(b"", mtime=0), "empty-file"),
        (b"\x1f\x8b\x08\x00garbage", "damaged-file"),
    ],
)
def test_what_is_no_export_is_refused_in_one_line(content: bytes, code: str, tmp_path: Path) -> None:
    path = tmp_path / "file.sqlite"
    path.write_bytes(content)
    error = outcome(path)
    assert isinstance(error, UnreadableFile)
    assert error.code == code


def test_an_absent_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="No such file"):
        read_nsys(tmp_path / "nothing.sqlite")


def test_somebody_elses_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE customers (id INTEGER, name TEXT)")
    connection.commit()
    connection.close()
    with pytest.raises(UnreadableFile) as caught:
        read_nsys(path)
    assert caught.value.code == "not-nsys"


def test_views_and_triggers_are_never_touched(tmp_path: Path) -> None:
    path = small().write(tmp_path / "export.sqlite")
    connection = sqlite3.connect(path)
    connection.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_MEMSET RENAME TO hidden")
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS start, x AS end FROM n"
    connection.execute(f"CREATE VIEW CUPTI_ACTIVITY_KIND_MEMSET AS {endless}")
    connection.execute("CREATE VIEW DIAGNOSTIC_EVENT AS SELECT load_extension('evil') AS text")
    connection.execute("CREATE TRIGGER t AFTER INSERT ON StringIds BEGIN SELECT load_extension('evil'); END")
    connection.execute("CREATE VIRTUAL TABLE OSRT_API USING fts4(start, end)")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    rows = read_nsys(path)
    assert rows.tables["gpu"]["kind"].to_list() == ["kernel", "memcpy", "kernel"]
    assert path.read_bytes() == before
    assert [item.name for item in tmp_path.iterdir()] == ["export.sqlite"]


def test_values_of_the_wrong_type_become_null(tmp_path: Path) -> None:
    export = small()
    export.add("CUPTI_ACTIVITY_KIND_KERNEL", start="soon", end=b"\x00" * 100_000, deviceId=1.5, globalPid="x")
    export.kernel(300, 310, gridX="many", demangledName=999, shortName=-1, deviceId=1 << 40, registersPerThread=1 << 50)
    export.call(320, 330, "cudaFree_v3020", returnValue=1 << 40, globalTid=None)
    export.add(
        "CUPTI_ACTIVITY_KIND_MEMCPY", start=400, end=410, copyKind=99, srcKind="?", bytes=-1, globalPid=GLOBAL_PID
    )
    export.range(500, 510, b"\xff\xfe", textId="x", domainId=-3)  # type: ignore[arg-type]
    export.add("ThreadNames", nameId="x", priority="y", globalTid="z")
    rows = outcome(export.write(tmp_path / "export.sqlite"))
    assert isinstance(rows, Rows)
    strange = rows.tables["gpu"].filter(start_ns=300).row(0, named=True)
    assert (strange["grid_x"], strange["device"], strange["registers"]) == (None, None, None)
    assert strange["name"] == "[kernel without a name]"
    copy = rows.tables["gpu"].filter(start_ns=400).row(0, named=True)
    assert (copy["name"], copy["copy_kind"], copy["source_memory"]) == ("[CUDA memcpy Unknown]", "Unknown", "Unknown")
    assert rows.tables["api"].filter(start_ns=320)["return_code"].to_list() == [None]
    assert [entry.code for entry in rows.health] == ["impossible-times"]


def test_text_that_is_not_utf8_is_read(tmp_path: Path) -> None:
    path = small().write(tmp_path / "export.sqlite")
    connection = sqlite3.connect(path)
    connection.execute("UPDATE StringIds SET value = CAST(x'6b65ff726e' AS TEXT) WHERE value = 'triton_add'")
    connection.commit()
    connection.close()
    assert "ke\ufffdrn" in read_nsys(path).tables["gpu"]["name"].to_list()


def test_negative_ids_and_times_before_zero_are_survived(tmp_path: Path) -> None:
    export = (
        Export().kernel(-500, -400, globalPid=-(1 << 57)).call(-600, -590, "cudaLaunchKernel_v7000", -1, globalTid=-1)
    )
    rows = outcome(export.write(tmp_path / "export.sqlite"))
    assert isinstance(rows, Rows)
    assert rows.tables["gpu"]["start_ns"].to_list() == [-500]


def test_an_export_without_rows_is_named_as_such(tmp_path: Path) -> None:
    rows = outcome(Export().write(tmp_path / "export.sqlite"))
    assert isinstance(rows, Rows)
    assert [entry.code for entry in rows.health] == ["no-kernels"]


def test_names_that_need_quoting_in_a_path(tmp_path: Path) -> None:
    folder = tmp_path / "a?b#c %20 ü"
    folder.mkdir()
    assert read_nsys(small().write(folder / "x&y=1.sqlite")).tables["gpu"].height == 4


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.floats(0, 1), packed=st.booleans())
def test_any_truncation_gives_rows_or_an_error(cut: float, packed: bool, large_bytes: bytes, tmp_path: Path) -> None:
    content = gzip.compress(large_bytes, 1) if packed else large_bytes
    path = tmp_path / "cut"
    path.write_bytes(content[: int(len(content) * cut)])
    outcome(path)


@pytest.mark.parametrize("seed", range(40))
def test_any_spoiled_bytes_give_rows_or_an_error(seed: int, small_bytes: bytes, tmp_path: Path) -> None:
    random_numbers = random.Random(seed)
    content = bytearray(small_bytes)
    for _ in range(random_numbers.choice((1, 10, 200, 3000))):
        content[random_numbers.randrange(100 if seed % 4 == 0 else len(content))] = random_numbers.randrange(256)
    content[:16] = b"SQLite format 3\x00"
    path = tmp_path / "spoiled"
    path.write_bytes(content)
    outcome(path)


@pytest.mark.parametrize("seed", range(20))
def test_pages_that_point_at_each_other_end(seed: int, large_bytes: bytes, tmp_path: Path) -> None:
    """Interior pages rewritten to point at random pages: loops and repetitions that a cursor could follow for ever."""
    random_numbers = random.Random(seed)
    content = bytearray(large_bytes)
    page_bytes = int.from_bytes(content[16:18], "big")
    pages = len(content) // page_bytes
    for page in range(1, pages):
        begin = page * page_bytes
        if content[begin] == 5:
            cells = int.from_bytes(content[begin + 3 : begin + 5], "big")
            for cell in range(cells):
                pointer = begin + int.from_bytes(content[begin + 12 + 2 * cell : begin + 14 + 2 * cell], "big")
                content[pointer : pointer + 4] = random_numbers.randrange(1, pages + 1).to_bytes(4, "big")
    path = tmp_path / "loops"
    path.write_bytes(content)
    outcome(path)


def test_a_long_output_is_read_from_its_end(tmp_path: Path) -> None:
    export = Export().error_output("x" * 3_000_000 + "\nRuntimeError: at the very end\n")
    export.add("OSRT_API", start=1, end=2, globalTid=GLOBAL_TID)
    rows = outcome(export.write(tmp_path / "export.sqlite"))
    assert isinstance(rows, Rows)
    assert rows.health[0].message.endswith("RuntimeError: at the very end")
