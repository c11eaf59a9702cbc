"""Fields of an nsys export: what each becomes, and that rows the reader needs stay."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from nsys_files import GLOBAL_PID, GLOBAL_TID, Export, small

from warpline.errors import UnreadableFile, WarplineError
from warpline.scrub.file import Result, check, scrub
from warpline.scrub.kinds import Kind
from warpline.scrub.nsys_rules import argument

STRANGER = (1 << 48) | (99 << 24) | 99


def scrubbed(export: Export, folder: Path, *keep: Kind) -> tuple[Result, sqlite3.Connection]:
    result = scrub(export.write(folder / "export.sqlite"), keep=keep)
    assert result.output is not None
    return result, sqlite3.connect(result.output)


def rows(connection: sqlite3.Connection, query: str) -> list[tuple[Any, ...]]:
    return connection.execute(query).fetchall()


def kinds(result: Result) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for leak in result.leaks:
        found.setdefault(leak.kind, set()).add(leak.place)
    return found


def test_facts_are_replaced_by_what_they_are(tmp_path: Path) -> None:
    export = small().option("DEVICE_DISPLAY_NAME", "crick").option("PROCESS_0:COMMAND", "/acme/bin/python")
    export.option("PROCESS_0:ARGUMENT_0", "train.py").option("PROCESS_0:ARGUMENT_1", "--run=nightfall")
    export.option("PROCESS_0:WORKING_DIR", "/acme").option("PROCESS_0:ENVIRONMENT_VARIABLE", "LANG=C")
    export.option("RUN_DURATION_MS", "60000").system("Hostname", "crick").system("NicInfo", '{"a": 1}')
    export.system("DeviceEnvironment", "A=1\nB=2").system("NvDriverVersion", "570.86.10")
    _, connection = scrubbed(export, tmp_path)
    assert dict(rows(connection, "SELECT name, value FROM META_DATA_CAPTURE")) == {
        "DEVICE_DISPLAY_NAME": "host-1",
        "PROCESS_0:COMMAND": "python",
        "PROCESS_0:ARGUMENT_0": "train.py",
        "PROCESS_0:ARGUMENT_1": "--run=(removed)",
        "PROCESS_0:WORKING_DIR": "(removed)",
        "RUN_DURATION_MS": "60000",
    }
    assert dict(rows(connection, "SELECT name, value FROM TARGET_INFO_SYSTEM_ENV")) == {
        "Hostname": "host-1",
        "NicInfo": "(removed)",
        "NvDriverVersion": "570.86.10",
    }
    assert rows(connection, "SELECT value FROM META_DATA_EXPORT WHERE name = 'EXPORT_USER'") == [("user-1",)]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("train.py", "train.py"),
        ("/acme/x/train.py", "train.py"),
        ("--steps=12", "--steps=12"),
        ("--name=merger", "--name=(removed)"),
        ("--fast", "--fast"),
        ("-c", "-c"),
        ("32", "32"),
        ("merger", "(removed)"),
        ("import os; print(1)", "(removed)"),
        ("123456789", "(removed)"),
    ],
)
def test_arguments_keep_names_and_lose_values(given: str, expected: str) -> None:
    assert argument(given) == expected
    assert argument(expected) == expected


def test_names_of_processes_that_were_not_profiled_go(tmp_path: Path) -> None:
    export = small()
    export.add("ThreadNames", nameId=export.string("acme-agentd"), priority=20, globalTid=STRANGER)
    export.add("ThreadNames", nameId=export.string("pt_autograd_0"), priority=0, globalTid=GLOBAL_TID + 1)
    export.add("PROCESSES", globalPid=STRANGER - 99, pid=99, name="/opt/acme/agentd")
    export.add("PROCESSES", globalPid=GLOBAL_PID, pid=4321, name="/usr/bin/python3")
    result, connection = scrubbed(export, tmp_path)
    assert Kind.PROCESSES in kinds(result)
    strings = {value for (value,) in rows(connection, "SELECT value FROM StringIds")}
    assert "acme-agentd" not in strings
    assert {"pt_autograd_0", "python3", "(removed)"} <= strings
    assert rows(connection, "SELECT count(*) FROM ThreadNames") == [(2,)]
    assert rows(connection, "SELECT name FROM PROCESSES ORDER BY pid") == [("(removed)",), ("/usr/bin/python3",)]


def test_the_number_of_an_enum_refers_to_no_string(tmp_path: Path) -> None:
    export = small()
    name = export.string("acme-agentd")
    export.add("ThreadNames", nameId=name, priority=20, globalTid=STRANGER)
    export.add("TARGET_INFO_SYSTEM_ENV", name="Kernel", nameEnum=name, value="6.8.0")
    result, connection = scrubbed(export, tmp_path)
    assert result.output is not None
    assert check(result.output).leaks == ()
    assert "acme-agentd" not in {value for (value,) in rows(connection, "SELECT value FROM StringIds")}


def test_error_output_stays_and_output_goes(tmp_path: Path) -> None:
    export = small().error_output("File '/home/alice/x.py'\nRuntimeError: CUDA error")
    name = export.string("/tmp/nvidia/streams/pid_4321_stdout.log")
    export.add("ProcessStreams", globalPid=GLOBAL_PID, filenameId=name, contentId=export.string("accuracy 0.7"))
    result, connection = scrubbed(export, tmp_path)
    texts = {value for (value,) in rows(connection, "SELECT value FROM StringIds")}
    assert "File '/home/user-2/x.py'\nRuntimeError: CUDA error" in texts
    assert "accuracy 0.7" not in texts
    assert kinds(result)[Kind.OUTPUT] == {"StringIds.value"}


def test_kept_kinds_stay(tmp_path: Path) -> None:
    export = small().option("DEVICE_DISPLAY_NAME", "crick").option("PROCESS_0:ENVIRONMENT_VARIABLE", "LANG=C")
    _, connection = scrubbed(export, tmp_path, Kind.HOST, Kind.ENVIRONMENT)
    assert ("DEVICE_DISPLAY_NAME", "crick") in rows(connection, "SELECT * FROM META_DATA_CAPTURE")
    assert ("PROCESS_0:ENVIRONMENT_VARIABLE", "LANG=C") in rows(connection, "SELECT * FROM META_DATA_CAPTURE")


def test_identifiers_keep_their_form(tmp_path: Path) -> None:
    path = small().write(tmp_path / "export.sqlite")
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE NIC (uuid TEXT, guid INTEGER, mac BLOB)")
    connection.execute(
        "INSERT INTO NIC VALUES ('8c2b1f3e-5d4a-4b6c-9e8f-7a6b5c4d3e2f', 1234567890123, x'9c6b00a1b2c39c6b')"
    )
    connection.commit()
    connection.close()
    result = scrub(path)
    assert result.output is not None
    ((uuid, guid, mac),) = rows(sqlite3.connect(result.output), "SELECT * FROM NIC")
    assert uuid == "00000000-0000-0000-0000-000000000001"
    assert 0 < guid < 1 << 16
    assert mac[:-2] == bytes(6)
    assert len(mac) == 8
    assert check(result.output).clean


def test_text_that_is_not_utf8_comes_back_as_it_was(tmp_path: Path) -> None:
    path = small().write(tmp_path / "export.sqlite")
    connection = sqlite3.connect(path)
    raw = b"caf\xe9 in /home/alice/x"
    connection.execute("CREATE TABLE NOTES AS SELECT CAST(? AS TEXT) AS text", (raw,))
    connection.commit()
    connection.close()
    result = scrub(path)
    assert result.output is not None
    clean = sqlite3.connect(result.output)
    clean.text_factory = bytes
    assert (b"caf\xe9 in /home/user-2/x",) in rows(clean, "SELECT text FROM NOTES")


def test_an_export_in_utf16_stays_in_utf16(tmp_path: Path) -> None:
    path = tmp_path / "wide.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA encoding = 'UTF-16le'")
    connection.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
    connection.execute("CREATE TABLE NVTX_EVENTS (textId INTEGER)")
    connection.execute("INSERT INTO StringIds VALUES (1, '/home/alice/ü.py')")
    connection.execute("INSERT INTO NVTX_EVENTS VALUES (1)")
    connection.commit()
    connection.close()
    result = scrub(path)
    assert result.output is not None
    assert rows(sqlite3.connect(result.output), "SELECT value FROM StringIds") == [("/home/user-1/ü.py",)]
    assert "alice".encode("utf-16-le") not in result.output.read_bytes()


def test_deleted_rows_are_seen_and_gone(tmp_path: Path) -> None:
    path = small().write(tmp_path / "export.sqlite")
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA secure_delete=off")
    connection.execute("CREATE TABLE ODD (value TEXT)")
    connection.executemany("INSERT INTO ODD VALUES (?)", [("password=hunter22 " * 50,)] * 200)
    connection.commit()
    connection.execute("DROP TABLE ODD")
    connection.commit()
    connection.close()
    assert b"hunter22" in path.read_bytes()
    assert "free pages" in kinds(check(path))[Kind.TOKEN]
    result = scrub(path)
    assert result.output is not None
    assert b"hunter22" not in result.output.read_bytes()


def test_views_and_triggers_do_not_run(tmp_path: Path) -> None:
    path = small().write(tmp_path / "export.sqlite")
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE COPIES (value TEXT)")
    connection.execute(
        "CREATE TRIGGER keep_old AFTER UPDATE ON META_DATA_EXPORT BEGIN INSERT INTO COPIES VALUES (old.value); END"
    )
    connection.commit()
    connection.close()
    result = scrub(path)
    assert result.output is not None
    assert rows(sqlite3.connect(result.output), "SELECT count(*) FROM COPIES") == [(0,)]


def test_virtual_tables_are_refused(tmp_path: Path) -> None:
    path = small().write(tmp_path / "export.sqlite")
    connection = sqlite3.connect(path)
    try:
        connection.execute("CREATE VIRTUAL TABLE odd USING fts5(text)")
    except sqlite3.OperationalError:
        pytest.skip("this SQLite has no FTS5")
    connection.commit()
    connection.close()
    with pytest.raises(WarplineError, match="not-an-export"):
        scrub(path)


def test_a_damaged_export_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    path = small().write(tmp_path / "export.sqlite")
    raw = bytearray(path.read_bytes())
    raw[4096 * 2 :] = b"\xa5" * (len(raw) - 4096 * 2)
    path.write_bytes(raw)
    with pytest.raises(UnreadableFile, match="damaged-file"):
        scrub(path)
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == raw
