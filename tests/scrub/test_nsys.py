"""What a scrubbed export holds: the rows that a reader needs, from a new database."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest
from nsys_files import GLOBAL_PID, GLOBAL_TID, Export, small

from warpline.errors import UnreadableFile
from warpline.scrub.file import ScrubResult, check, scrub
from warpline.scrub.messages import message, metric
from warpline.scrub.nsys_fields import PAIRS, TABLES
from warpline.scrub.values import DROPPED
from warpline.scrub.values import number as number_of_torch


def scrubbed(export: Export, folder: Path, *keep: str) -> tuple[ScrubResult, sqlite3.Connection]:
    output = folder / "out.sqlite"
    result = scrub(export.write(folder / "export.sqlite"), output, keep=keep)
    assert check(output, [field for field in keep if field == "names"]).clean or keep
    return result, sqlite3.connect(output)


def rows(connection: sqlite3.Connection, query: str) -> list[tuple[Any, ...]]:
    return connection.execute(query).fetchall()


def names(connection: sqlite3.Connection, table: str, column: str) -> list[str]:
    query = f"SELECT value FROM {table} LEFT JOIN StringIds ON StringIds.id = {column} ORDER BY {table}.rowid"
    return [value for (value,) in rows(connection, query)]


def test_the_timeline_stays_as_it_is(tmp_path: Path) -> None:
    export = small().kernel(100, 200, "acme_gemm<float>", 7)
    path = export.write(tmp_path / "before.sqlite")
    _, after = scrubbed(export, tmp_path)
    columns = "start, end, deviceId, streamId, correlationId, globalPid, gridX, blockX, registersPerThread"
    query = f"SELECT {columns} FROM CUPTI_ACTIVITY_KIND_KERNEL"
    assert rows(after, query) == rows(sqlite3.connect(path), query)
    assert names(after, "CUPTI_ACTIVITY_KIND_KERNEL", "demangledName")[-1] == "nameB_gemm<float>"


def test_facts_pass_by_their_names(tmp_path: Path) -> None:
    export = small().option("DEVICE_DISPLAY_NAME", "crick").option("PROCESS_0:COMMAND", "/acme/bin/python3.11")
    export.option("PROCESS_0:ARGUMENT_0", "train.py").option("PROCESS_0:ENVIRONMENT_VARIABLE", "LANG=C")
    export.option("RUN_DURATION_MS", "60000").option("CAPTURE_EVENT_TYPE", "Cuda")
    export.system("Hostname", "crick").system("NvDriverVersion", "570.86.10").system("CudaDriverVersion", "12080")
    export.system("SoftwareReleaseVersion", "5.15.0-acme-gke").system("OsDescription", "Ubuntu 22.04.3 LTS")
    _, connection = scrubbed(export, tmp_path)
    assert dict(rows(connection, "SELECT name, value FROM META_DATA_CAPTURE")) == {
        "PROCESS_0:COMMAND": "python3.11",
        "RUN_DURATION_MS": "60000",
        "CAPTURE_EVENT_TYPE": "Cuda",
    }
    assert dict(rows(connection, "SELECT name, value FROM TARGET_INFO_SYSTEM_ENV")) == {
        "NvDriverVersion": "570.86.10",
        "CudaDriverVersion": "12080",
        "SoftwareReleaseVersion": "5.15.0-generic",
        "OsDescription": "Ubuntu 22.04.3 LTS",
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CudaDriverVersion", "4111 1111 1111 1111"),
        ("CudaDriverVersion", "4711"),
        ("NvDriverVersion", "192.168.13.37"),
        ("NvDriverVersion", "10.31.7.254"),
    ],
)
def test_a_version_passes_only_as_a_whole(name: str, value: str, tmp_path: Path) -> None:
    _, connection = scrubbed(small().system(name, value), tmp_path)
    assert not [
        found for (found,) in rows(connection, "SELECT value FROM TARGET_INFO_SYSTEM_ENV") if found[:2] in value
    ]


def test_only_known_tables_are_written(tmp_path: Path) -> None:
    export = small().add("PROCESSES", globalPid=GLOBAL_PID, pid=4321, name="/opt/acme/agentd")
    path = export.write(tmp_path / "export.sqlite")
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE ODD (id INTEGER PRIMARY KEY AUTOINCREMENT, value TEXT)")
    connection.execute("CREATE VIEW SEEN AS SELECT * FROM ODD")
    connection.execute("CREATE INDEX BY_VALUE ON ODD (value)")
    connection.commit()
    connection.close()
    output = tmp_path / "out.sqlite"
    result = scrub(path, output)
    found = rows(sqlite3.connect(output), "SELECT type, name FROM sqlite_master")
    assert {kind for kind, _ in found} == {"table"}
    assert {name for _, name in found} <= {*TABLES, *PAIRS, "StringIds"}
    places = {change.place for change in result.changes if change.action == "dropped"}
    assert {"(other)", "view", "index"} <= places
    assert rows(sqlite3.connect(output), "SELECT name FROM PROCESSES") == [("processB",)]


def test_domains_of_libraries_and_threads_of_torch_stay(tmp_path: Path) -> None:
    export = small().range(1, None, "NCCL", kind=75, domainId=3).range(1, None, "blackbriar", kind=75, domainId=4)
    export.add("ThreadNames", nameId=export.string("pt_autograd_0"), priority=0, globalTid=GLOBAL_TID + 1)
    export.add("ThreadNames", nameId=export.string("acme-agentd"), priority=0, globalTid=GLOBAL_TID + 2)
    _, connection = scrubbed(export, tmp_path)
    assert rows(connection, "SELECT text FROM NVTX_EVENTS WHERE eventType = 75") == [("NCCL",), ("domainB",)]
    assert names(connection, "ThreadNames", "nameId")[-2:] == ["pt_autograd_0", "threadB"]


FAILURES = {
    "File '/home/alice/x.py'\nRuntimeError: CUDA error: alice": "RuntimeError: CUDA error: (removed)",
    "Traceback\nacme.NightfallError: gone": "RuntimeError: (removed)",
    "training\nKeyboardInterrupt": "KeyboardInterrupt: (removed)",
    "all went well for alice": "(removed)",
}


@pytest.mark.parametrize("text", FAILURES)
def test_error_output_says_only_how_the_program_failed(text: str, tmp_path: Path) -> None:
    _, connection = scrubbed(small().error_output(text), tmp_path)
    assert names(connection, "ProcessStreams", "contentId") == [FAILURES[text]]
    assert names(connection, "ProcessStreams", "filenameId") == ["stderr"]


MESSAGES = {
    "CUPTI buffers: 3 of 5, saved to /home/ada/run.nsys-rep": "CUPTI buffers: 3 of 5. (removed)",
    "Installed CUDA driver version (13.0) is not supported": "Installed CUDA driver version (13.0) is not supported",
    "connect to 10.31.7.254:29500": "(removed)",
    "Number of CUPTI events: 123456": "Number of CUPTI events: 123456",
    "user ada@acme.co": "(removed)",
}


def test_names_of_gpu_metrics_stay_and_others_do_not() -> None:
    for name in ("GPC Clock Frequency [MHz]", "Vertex/Tess/Geometry Warps in Flight [Avg Warps per Cycle]"):
        assert metric(name) == name
    assert "gandalf" not in metric("SMs Active gandalf [Throughput %]").lower()
    assert "4111111111111111" not in metric("SM Issue 4111111111111111")


@pytest.mark.parametrize("text", MESSAGES)
def test_messages_keep_the_sentences_of_nsys(text: str) -> None:
    assert message(text) == MESSAGES[text]
    assert message(MESSAGES[text]) == MESSAGES[text]


def test_numbers_that_no_column_holds_are_dropped(tmp_path: Path) -> None:
    export = small().kernel(5, 6, "gemm", correlation=4929739184265077, gridX=4929739184265077)
    result, connection = scrubbed(export, tmp_path)
    assert rows(connection, "SELECT correlationId, gridX FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE start = 5") == [
        (None, None)
    ]
    assert sum(change.count for change in result.changes if change.place.endswith(".gridX")) == 1


@pytest.mark.parametrize(
    ("value", "left"),
    [(4111111111111111.0, None), (411111111111111, None), (1 << 40, 1 << 40), (55.123456789012, 55.1235), (12.5, 12.5)],
)
def test_a_measured_number_has_no_more_digits_than_in_a_trace_of_torch(
    value: float, left: float | None, tmp_path: Path
) -> None:
    path = small().write(tmp_path / "export.sqlite")
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE GPU_METRICS (timestamp INTEGER, typeId INTEGER, metricId INTEGER, value)")
        connection.execute("INSERT INTO GPU_METRICS VALUES (5, 1, 1, ?)", (value,))
    target = tmp_path / "new.sqlite"
    scrub(path, target)
    with sqlite3.connect(target) as connection:
        assert rows(connection, "SELECT value FROM GPU_METRICS") == [(left,)]
    kept = number_of_torch(msgspec.Raw(repr(value).encode()) if isinstance(value, float) else value)
    assert left == (None if kept is DROPPED else kept if isinstance(kept, int) else float(bytes(kept)))


def test_fields_and_tables_can_be_kept(tmp_path: Path) -> None:
    export = small().range(1, 2, "nightfall").option("PROCESS_0:ARGUMENT_0", "train.py")
    path = export.write(tmp_path / "export.sqlite")
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE ODD (value TEXT)")
    connection.execute("INSERT INTO ODD VALUES ('blackbriar')")
    connection.commit()
    connection.close()
    output = tmp_path / "out.sqlite"
    scrub(path, output, keep=["NVTX_EVENTS.text", "META_DATA_CAPTURE.value", "ODD"])
    after = sqlite3.connect(output)
    assert rows(after, "SELECT text FROM NVTX_EVENTS") == [("nightfall",)]
    assert ("PROCESS_0:ARGUMENT_0", "train.py") in rows(after, "SELECT name, value FROM META_DATA_CAPTURE")
    assert rows(after, "SELECT value FROM ODD") == [("blackbriar",)]


def test_a_damaged_export_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    path = small().write(tmp_path / "export.sqlite")
    raw = bytearray(path.read_bytes())
    raw[4096 * 2 :] = b"\xa5" * (len(raw) - 4096 * 2)
    path.write_bytes(raw)
    with pytest.raises(UnreadableFile, match="damaged-file"):
        scrub(path, tmp_path / "out.sqlite")
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == raw


def test_pages_that_point_at_each_other_end(tmp_path: Path) -> None:
    """A page of a table that names itself as its child would give rows forever."""
    export = small()
    for number in range(4000):
        export.call(number, number + 1, "cudaLaunchKernel", number)
    path = export.write(tmp_path / "export.sqlite")
    connection = sqlite3.connect(path)
    (root,) = connection.execute(
        "SELECT rootpage FROM sqlite_master WHERE name = 'CUPTI_ACTIVITY_KIND_RUNTIME'"
    ).fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    raw = bytearray(path.read_bytes())
    start = (root - 1) * size
    assert raw[start] == 5, "an interior page"
    cells = int.from_bytes(raw[start + 3 : start + 5], "big")
    for cell in range(cells):
        at = start + int.from_bytes(raw[start + 12 + 2 * cell : start + 14 + 2 * cell], "big")
        raw[at : at + 4] = root.to_bytes(4, "big")
    path.write_bytes(raw)
    with pytest.raises(UnreadableFile, match="damaged-file"):
        scrub(path, tmp_path / "out.sqlite")
    assert list(tmp_path.iterdir()) == [path]


def test_a_database_without_a_table_of_nsys_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t9 (a TEXT PRIMARY KEY, b TEXT) WITHOUT ROWID")
    connection.commit()
    connection.close()
    with pytest.raises(UnreadableFile, match="not-nsys"):
        scrub(path, tmp_path / "out.sqlite")


@pytest.mark.parametrize(
    ("release", "shown"),
    [
        ("5.15.0-acme-gke", ["5.15.0-generic"]),
        ("6.8", ["6.8"]),
        ("5.15.153.1-microsoft-standard-WSL2", ["5.15.153-microsoft-standard-WSL2"]),
        ("10.31.7.254", []),
        ("8.8.4.4", []),
        ("010.031.007.254", []),
    ],
)
def test_the_release_of_a_system_is_no_address(release: str, shown: list[str], tmp_path: Path) -> None:
    _, connection = scrubbed(small().system("SoftwareReleaseVersion", release), tmp_path)
    found = rows(connection, "SELECT value FROM TARGET_INFO_SYSTEM_ENV WHERE name = 'SoftwareReleaseVersion'")
    assert [value for (value,) in found] == shown
