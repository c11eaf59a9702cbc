"""A hundred forms of secrets in each of more than a hundred places: none survives in the bytes of the scrubbed file."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kineto_files import annotation, call, copy, frame, kernel, launched, op, write
from nsys_files import GLOBAL_PID, GLOBAL_TID, Export, small
from planted_secrets import FORMS, NUMBERS, survivors, texts

from warpline.scrub.file import check, scrub
from warpline.scrub.vocabulary import is_known

Event = dict[str, Any]


def base() -> list[Event]:
    return [op("aten::mm", 0, 100, external=1), *launched("gemm", 10, 20, 10, 1)]


def metadata(name: str, value: str) -> Event:
    return {"ph": "M", "name": name, "pid": 1, "tid": 2, "ts": 0, "args": {"name": value}}


def with_keys(event: Event, **more: Any) -> Event:
    return event | more


EVENTS: dict[str, Callable[[str], Event]] = {
    "kernel's name": lambda text: kernel(text, 1, 1, 9),
    "kernel's name within a template": lambda text: kernel(f"void gemm<{text}, 4>(float*)", 1, 1, 9),
    "op's name": lambda text: op(text, 1, 1),
    "op's name in a namespace": lambda text: op(f"acme::{text}", 1, 1),
    "range's name": lambda text: annotation(text, 1, 1),
    "range's name beside a known word": lambda text: annotation(f"forward {text}", 1, 1),
    "range's name like torch's own": lambda text: annotation(f"Optimizer.step#{text}.step", 1, 1),
    "range on the GPU": lambda text: with_keys(annotation(text, 1, 1), cat="gpu_user_annotation"),
    "frame": lambda text: frame(text, 1, 1, 1, None),
    "file of a frame": lambda text: frame(f"/srv/{text}/train.py(12): main", 1, 1, 1, None),
    "function of a frame": lambda text: frame(f"train.py(12): {text}", 1, 1, 1, None),
    "library's frame": lambda text: frame(f"/x/site-packages/{text}/a.py(12): f", 1, 1, 1, None),
    "torch's frame": lambda text: frame(f"torch/{text}.py(12): {text}", 1, 1, 1, None),
    "module": lambda text: frame(f"nn.Module: {text}_0", 1, 1, 1, None),
    "built-in function": lambda text: frame(f"<built-in method {text} of dict object at 0x7f00>", 1, 1, 1, None),
    "call's name": lambda text: call(text, 1, 1, 9),
    "copy's name": lambda text: copy(text, 1, 1, 9, 4),
    "category": lambda text: with_keys(op("aten::mm", 1, 1), cat=text),
    "process id": lambda text: with_keys(op("aten::mm", 1, 1), pid=text),
    "thread id": lambda text: with_keys(op("aten::mm", 1, 1), tid=text),
    "time": lambda text: with_keys(op("aten::mm", 1, 1), dur=text),
    "flow": lambda text: {"ph": "s", "cat": "ac2g", "name": text, "id": text, "pid": 1, "tid": 1, "ts": 1},
    "unknown key of an event": lambda text: with_keys(op("aten::mm", 1, 1), note=text),
    "phase": lambda text: with_keys(op("aten::mm", 1, 1), ph=text),
    "thread's name": lambda text: metadata("thread_name", text),
    "process's name": lambda text: metadata("process_name", f"/usr/bin/{text}"),
    "name of a metadata event": lambda text: metadata(text, "python"),
    "call stack": lambda text: op("aten::mm", 1, 1, **{"Call stack": f"train.py(1): f;{text}"}),
    "argument that is a number": lambda text: kernel("gemm", 1, 1, 9, **{"bytes": text, "grid": [text, 1, 1]}),
    "shapes": lambda text: op("aten::mm", 1, 1, **{"Input Dims": [[text]], "Input Strides": text}),
    "types": lambda text: op("aten::mm", 1, 1, **{"Input type": [text, "float"]}),
    "scalars": lambda text: op("aten::mm", 1, 1, **{"Concrete Inputs": [text, "1"]}),
    "known text argument": lambda text: op("c10d::x", 1, 1, **{"Collective name": text, "Process Group Name": text}),
    "unknown argument": lambda text: kernel("gemm", 1, 1, 9, note=text),
    "nested argument": lambda text: kernel("gemm", 1, 1, 9, nested={"deep": [{"er": text}]}, grid={"x": text}),
    "key of an argument": lambda text: kernel("gemm", 1, 1, 9, **{text: 1}),
    "arguments that are no object": lambda text: with_keys(op("aten::mm", 1, 1), args=[text]),
}
TEXT_ARGUMENTS = (
    *(
        "Collective name",
        "dtype",
        "cuda_sync_kind",
        "kernel_backend",
        "Trace name",
        "scope",
        "Process Group Name",
        "kind",
    ),
    *("Process Group Description", "labels", "Comms Id", "kernel", "kernel_name", "Call stack", "Process Group Ranks"),
    *("Addr", "ptr", "src", "finished", "Python thread", "Python parent id", "External id", "correlation", "name"),
    *("grid", "Input type", "Concrete Inputs", "registers per thread", "est. achieved occupancy %"),
)
EVENTS |= {
    "arguments of a range": lambda text: annotation("forward", 1, 1) | {"args": dict.fromkeys(TEXT_ARGUMENTS, text)},
    "lists as arguments": lambda text: op("aten::mm", 1, 1) | {"args": {key: [text, [text]] for key in TEXT_ARGUMENTS}},
    "arguments of a label": lambda text: (
        metadata("process_labels", text) | {"args": dict.fromkeys(TEXT_ARGUMENTS, text)}
    ),
    "kernel's suffix": lambda text: kernel(f"gemm_{text}", 1, 1, 9),
    "Triton's kernel": lambda text: kernel(f"triton_poi_fused_{text}_0", 1, 1, 9),
    "op of torch": lambda text: op(f"aten::{text}", 1, 1),
    "range of NCCL": lambda text: annotation(f"nccl:{text}", 1, 1),
    "range of FSDP": lambda text: annotation(f"FSDP::{text}", 1, 1),
    "compiled graph": lambda text: annotation(f"## Call CompiledFxGraph {text} ##", 1, 1),
    "thread with a number": lambda text: metadata("thread_name", f"thread 12 ({text})"),
    "stream": lambda text: with_keys(kernel("gemm", 1, 1, 9), tid=f"stream {text}"),
    "frame of JAX": lambda text: {"ph": "X", "name": f"${text}.py:12 f", "pid": 1, "tid": 1, "ts": 1, "dur": 1},
    "event without a category": lambda text: {"ph": "X", "name": text, "pid": 1, "tid": 1, "ts": 1, "dur": 1},
    "module without a number": lambda text: frame(f"nn.Module: {text}", 1, 1, 1, None),
    "frozen module": lambda text: frame(f"<frozen {text}>(12): f", 1, 1, 1, None),
    "generated code": lambda text: frame(f"<eval_with_key>.{text}(12): f", 1, 1, 1, None),
    "function of torch": lambda text: frame(f"/a/site-packages/torch/nn.py(12): {text}", 1, 1, 1, None),
}
HEADERS: dict[str, Callable[[list[str]], dict[str, Any]]] = {
    "unknown top-level key": lambda found: {"notes": found},
    "top-level key itself": lambda found: dict.fromkeys(found, 1),
    "metadata": lambda found: {"metadata": {"system": {"env": {f"V{n}": text for n, text in enumerate(found)}}}},
    "name of the trace": lambda found: {"traceName": " ".join(found), "host_name": found[0]},
    "device's name": lambda found: {"deviceProperties": [{"id": n, "name": text} for n, text in enumerate(found)]},
    "device's unknown property": lambda found: {"deviceProperties": [{"id": 0, "numSms": 132, "uuid": found}]},
    "distributed info": lambda found: {"distributedInfo": {"rank": 0, "backend": found[0], "pg_config": found}},
    "machines": lambda found: {
        "distributedInfo": {
            "master_addr": found[0],
            "hosts": found,
            "nccl_version": found[1],
            "pg_config": [{"pg_name": text} for text in found],
        }
    },
    "devices": lambda found: {
        "deviceProperties": [
            {"id": 0, "name": f"NVIDIA H100 {text}", "pciBusID": text, "totalGlobalMem": text} for text in found
        ]
    },
    "environment": lambda found: {
        "env": {text: text for text in found},
        "hostname": found[0],
        "cupti_version": found[2],
    },
    "known header key of another type": lambda found: {"record_shapes": found, "schemaVersion": found[1]},
}
JSON_ENCODINGS = ("plain", "escaped", "gz")


def survived_in(path: Path, folder: Path) -> list[str]:
    assert survivors(path.read_bytes()), "nothing was planted"
    output = folder / f"out{''.join(path.suffixes)}"
    scrub(path, output)
    assert check(output).clean
    return survivors(output.read_bytes())


def test_there_are_enough_of_them() -> None:
    assert len(FORMS) >= 100
    assert len(EVENTS) + len(HEADERS) + len(ROWS) + len(SCHEMAS) >= 90


@pytest.mark.parametrize("place", EVENTS)
def test_events(place: str, tmp_path: Path) -> None:
    events = [EVENTS[place](text) for text in texts()]
    assert survived_in(write(tmp_path, base() + events), tmp_path) == []


@pytest.mark.parametrize("encoding", JSON_ENCODINGS)
@pytest.mark.parametrize("place", HEADERS)
def test_headers(place: str, encoding: str, tmp_path: Path) -> None:
    path = write(tmp_path, base(), **HEADERS[place](texts()))
    text = path.read_text()
    if encoding == "escaped":
        for secret in sorted(texts(), key=len, reverse=True):
            text = text.replace(
                json.dumps(secret)[1:-1], "".join(f"\\u{ord(char):04x}" for char in secret if ord(char) < 65536)
            )
        path.write_text(text)
    elif encoding == "gz":
        path = tmp_path / "trace.json.gz"
        path.write_bytes(gzip.compress(text.encode()))
    assert survived_in(path, tmp_path) == []


def test_keys_after_the_events(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": base(), "notes": texts(), "user_name": texts()[0]}))
    assert survived_in(path, tmp_path) == []


def test_an_event_that_is_not_json(tmp_path: Path) -> None:
    """An unescaped quotation mark in a name, as torch 2.13 writes it."""
    events = [json.dumps(annotation(f"@@{text}", 1, 1)).replace("@@", '"') for text in texts()]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": base()})[:-2] + ", " + ", ".join(events) + "]}")
    assert survived_in(path, tmp_path) == []


def test_numbers(tmp_path: Path) -> None:
    """A number is a secret too: under an unknown key, or where no id or size of a profile is that large."""
    events = [kernel("gemm", 1, 1, number, password=number, bytes=number) for number in NUMBERS]
    events += [op("aten::mm", 1, 1, external=number, **{"Input Dims": [[number]]}) for number in NUMBERS]
    events += [with_keys(op("aten::mm", 1, 1), pid=number, id=str(number)) for number in NUMBERS]
    path = write(tmp_path, base() + events, pin=NUMBERS[0], cupti_version=NUMBERS[1])
    assert survived_in(path, tmp_path) == []


def test_digits_in_numbers_with_a_fraction(tmp_path: Path) -> None:
    """A card in the digits of a measured number, or of a version."""
    digits = str(NUMBERS[0])
    text = json.dumps(
        {"cuda_runtime_version": 1, "traceEvents": [*base(), kernel("gemm", 1, 1, 9, **{"blocks per SM": 2})]}
    )
    path = tmp_path / "trace.json"
    path.write_text(text.replace(": 2}", f": 0.{digits}}}").replace('_version": 1', f'_version": {digits}.5'))
    assert survived_in(path, tmp_path) == []


def test_secrets_that_are_split(tmp_path: Path) -> None:
    """Neither half survives, whether the halves follow each other in names or in arguments."""
    halves = [
        (needle[: len(needle) // 2], needle[len(needle) // 2 :]) for _, needle in FORMS.values() if len(needle) > 11
    ]
    events = [
        event
        for pair in halves
        for half in pair
        for event in (annotation(half, 1, 1), kernel(half, 1, 1, 9, note=half))
    ]
    output = tmp_path / "out.json"
    scrub(write(tmp_path, base() + events), output)
    export = small()
    for pair in halves:
        for half in pair:
            export.range(1, 2, half).kernel(1, 2, half)
    other = tmp_path / "out.sqlite"
    scrub(export.write(tmp_path / "export.sqlite"), other)
    raw = output.read_bytes() + other.read_bytes()
    told = [half for pair in halves for half in pair if len(half) > 5 and not is_known(half)]
    told = [half for half in told if set(half) - set("0123456789_")]  # two numbers may be sizes
    assert len(told) > 60
    assert [half for half in told if half.encode() in raw] == []


ROWS: dict[str, Callable[[Export, str], object]] = {
    "StringIds that nothing refers to": lambda export, text: export.string(text),
    "demangled name": lambda export, text: export.kernel(1, 2, text),
    "API name": lambda export, text: export.call(1, 2, text),
    "NVTX text": lambda export, text: export.range(1, 2, text),
    "NVTX registered text": lambda export, text: export.range(1, 2, None, textId=export.string(text)),
    "NVTX domain": lambda export, text: export.range(1, None, text, kind=75),
    "OS call": lambda export, text: export.add(
        "OSRT_API", start=1, end=2, eventClass=27, globalTid=GLOBAL_TID, nameId=export.string(text)
    ),
    "thread": lambda export, text: export.add(
        "ThreadNames", nameId=export.string(text), priority=0, globalTid=GLOBAL_TID
    ),
    "process": lambda export, text: export.add("PROCESSES", globalPid=GLOBAL_PID, pid=1, name=f"/usr/bin/{text}"),
    "error output": lambda export, text: export.error_output(f"Traceback\n{text}\nRuntimeError: lost {text}"),
    "output": lambda export, text: export.add(
        "ProcessStreams",
        globalPid=GLOBAL_PID,
        filenameId=export.string(f"/tmp/{text}_stdout.log"),
        contentId=export.string(text),
    ),
    "remark": lambda export, text: export.remark(f"CUPTI failed: could not open {text}"),
    "argument": lambda export, text: export.option("PROCESS_0:ARGUMENT_1", text),
    "command": lambda export, text: export.option("PROCESS_0:COMMAND", f"/opt/{text}"),
    "environment": lambda export, text: export.option("PROCESS_0:ENVIRONMENT_VARIABLE", f"NOTE={text}"),
    "option's name": lambda export, text: export.option(text, "1"),
    "known option": lambda export, text: export.option("CAPTURE_EVENT_TYPE", text),
    "system": lambda export, text: export.system("DeviceEnvironment", text).system("OsDescription", text),
    "version": lambda export, text: export.system("NvDriverVersion", text).system("SoftwareReleaseVersion", text),
    "GPU": lambda export, text: export.add("TARGET_INFO_GPU", id=0, name=text, cuDevice=0),
    "metric": lambda export, text: export.add(
        "TARGET_INFO_GPU_METRICS", typeId=1, metricId=1, typeName=text, metricName=text
    ),
    "start": lambda export, text: export.add(
        "TARGET_INFO_SESSION_START_TIME", utcEpochNs=1, utcTime=text, localTime=text
    ),
    "integer column": lambda export, text: export.kernel(1, 2, "gemm", gridX=text, deviceId=text),
}


@pytest.mark.parametrize("place", ROWS)
def test_rows(place: str, tmp_path: Path) -> None:
    export = small()
    for text in texts():
        ROWS[place](export, text)
    assert survived_in(export.write(tmp_path / "export.sqlite"), tmp_path) == []


def literal(text: str) -> str:
    return "'" + text.replace("'", "''").replace("\0", "") + "'"


def comment(text: str) -> str:
    return text.replace("\n", " ").replace("\0", " ")


def insert_all(connection: sqlite3.Connection, values: list[Any]) -> None:
    connection.executemany("INSERT INTO ODD VALUES (?, ?)", list(enumerate(values)))


def plant_in_blobs(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE ODD (id INTEGER, data BLOB)")
    insert_all(connection, [b"\0\1" + text.encode(code) for code in ("utf-8", "utf-16-le") for text in texts()])


def plant_without_rowid(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE ODD (id TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID")
    insert_all(connection, texts())


def plant_deleted(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA secure_delete=off")
    connection.execute("CREATE TABLE ODD (id INTEGER, value TEXT)")
    insert_all(connection, [text * 40 for text in texts()])
    connection.commit()
    connection.execute("DELETE FROM ODD")


def plant_generated(connection: sqlite3.Connection) -> None:
    parts = [f"g{n} TEXT GENERATED ALWAYS AS ({literal(text)}) STORED" for n, text in enumerate(texts())]
    connection.execute(f"CREATE TABLE ODD (id INTEGER, {', '.join(parts)})")
    connection.execute("INSERT INTO ODD (id) VALUES (1)")


def plant_in_known_table(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN note TEXT")
    for text in texts():
        connection.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, end, note) VALUES (1, 2, ?)", (text,))


def plant_sequence(connection: sqlite3.Connection) -> None:
    for number, text in enumerate(texts()):
        connection.execute(
            f'CREATE TABLE "s{number} {comment(text).replace(chr(34), "")}" (id INTEGER PRIMARY KEY AUTOINCREMENT)'
        )
        connection.execute("UPDATE sqlite_sequence SET seq = 7")


def plant_statistics(connection: sqlite3.Connection) -> None:
    connection.execute("ANALYZE")
    connection.executemany("INSERT INTO sqlite_stat1 VALUES (?, NULL, ?)", [(text, text) for text in texts()])


def plant_triggers(connection: sqlite3.Connection) -> None:
    for number, text in enumerate(texts()):
        connection.execute(
            f"CREATE TRIGGER t{number} AFTER INSERT ON StringIds BEGIN INSERT INTO StringIds VALUES (9{number}, {literal(text)}); END"
        )


def plant_header(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA user_version = 1934907500")
    connection.execute("PRAGMA application_id = 1934907500")
    connection.execute(f"CREATE INDEX odd_index ON StringIds (value) WHERE value <> {literal(texts()[0])}")


SCHEMAS: dict[str, Callable[[sqlite3.Connection], object]] = {
    "unknown table": lambda connection: (
        connection.execute("CREATE TABLE ODD (id INTEGER, value TEXT)"),
        insert_all(connection, texts()),
    ),
    "blobs": plant_in_blobs,
    "table without row numbers": plant_without_rowid,
    "deleted rows": plant_deleted,
    "generated columns": plant_generated,
    "unknown column of a known table": plant_in_known_table,
    "comments of a definition": lambda connection: connection.execute(
        "CREATE TABLE ODD (id INTEGER,\n" + "\n".join(f"-- {comment(text)}" for text in texts()) + "\nvalue TEXT)"
    ),
    "defaults": lambda connection: connection.execute(
        "CREATE TABLE ODD (" + ", ".join(f"c{n} TEXT DEFAULT {literal(text)}" for n, text in enumerate(texts())) + ")"
    ),
    "names of columns": lambda connection: connection.execute(
        "CREATE TABLE ODD (" + ", ".join(f"`{n} {comment(text)}` TEXT" for n, text in enumerate(texts())) + ")"
    ),
    "views": lambda connection: [
        connection.execute(f"CREATE VIEW v{n} AS SELECT {literal(text)} AS x") for n, text in enumerate(texts())
    ],
    "triggers": plant_triggers,
    "sequence": plant_sequence,
    "statistics": plant_statistics,
    "header and index": plant_header,
}


@pytest.mark.parametrize("place", SCHEMAS)
def test_schemas(place: str, tmp_path: Path) -> None:
    path = small().write(tmp_path / "export.sqlite")
    connection = sqlite3.connect(path)
    SCHEMAS[place](connection)
    connection.commit()
    connection.close()
    assert survived_in(path, tmp_path) == []


def test_what_stands_beside_the_pages(tmp_path: Path) -> None:
    """Bytes after the last page, and a write-ahead log that was never merged."""
    path = small().write(tmp_path / "export.sqlite")
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=wal")
    connection.execute("CREATE TABLE ODD (id INTEGER, value TEXT)")
    insert_all(connection, texts())
    connection.commit()
    log = path.with_name(path.name + "-wal").read_bytes()
    connection.close()
    path.write_bytes(path.read_bytes() + "\n".join(texts()).encode())
    path.with_name(path.name + "-wal").write_bytes(log)
    assert survived_in(path, tmp_path) == []
    assert sorted(entry.name for entry in tmp_path.iterdir() if entry.name.startswith("out")) == ["out.sqlite"]


def test_texts_in_utf_16(tmp_path: Path) -> None:
    path = tmp_path / "export.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA encoding = 'UTF-16le'")
    connection.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
    connection.execute("CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, textId INTEGER)")
    for number, text in enumerate(texts()):
        connection.execute("INSERT INTO StringIds VALUES (?, ?)", (number, text))
        connection.execute("INSERT INTO NVTX_EVENTS VALUES (1, 2, 59, ?)", (number,))
    connection.commit()
    connection.close()
    assert survived_in(path, tmp_path) == []


IDENTITIES = (
    *("gpu-node-12.cluster.local", "tcp://data-server:29500", "s3://model-data/batch/index", "data-server"),
    *("/home/ray/release/plan", "file:///home/data/model", "gs://batch/model/index", "release.plan.server"),
    *("host data server", "mesh_data_parallel release plan", "/home/ray/release/plan.py(3): build_index"),
)
"""Hosts, URLs, paths, buckets and descriptions whose words a public library uses, each of them."""


@pytest.mark.parametrize("place", EVENTS)
def test_identities_of_ordinary_words(place: str, tmp_path: Path) -> None:
    path = write(tmp_path, base() + [EVENTS[place](text) for text in IDENTITIES])
    output = tmp_path / "out.json"
    scrub(path, output)
    kept = output.read_text()
    bare = [text.removeprefix("/home/ray/").split("://")[-1] for text in IDENTITIES]
    assert [text for text in (*IDENTITIES, *bare) if text in kept] == []
    assert check(output).clean


def test_names_that_look_like_pseudonyms_are_not_taken_for_them(tmp_path: Path) -> None:
    """The name `rangeB` of one program is not the first secret name of another."""
    path = write(tmp_path, [annotation("blackbriar", 1, 1), annotation("rangeB", 3, 1), annotation("rangeC 2", 5, 1)])
    output = tmp_path / "out.json"
    scrub(path, output)
    names = [event["name"] for event in json.loads(output.read_text())["traceEvents"]]
    assert names == ["rangeB", "rangeC", "rangeD 2"]
