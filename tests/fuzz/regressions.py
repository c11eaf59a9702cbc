"""Inputs that once broke something, or are of such a kind: made by code where they are large, else in `regressions/`."""

from __future__ import annotations

import json
import pickle
import sqlite3
import tempfile
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

from kineto_files import annotation, call, copy, kernel, launched, op
from nsys_files import GLOBAL_PID, GLOBAL_TID, Export, small
from snapshot_files import training as snapshot_of_training

from tests.fuzz import companions, texts
from tests.fuzz.commands import CODES, FILE, HISTORY, MORE_CODES, Command
from tests.fuzz.inputs import HISTORY_FILE, Files

FOLDER = Path(__file__).with_name("regressions")
Case = tuple[Files, list[Command]]
MADE: dict[str, Callable[[], Case]] = {}
WHY = ("diagnose", FILE, "--why", "--json", "--no-cache")
SHOWN = ("diagnose", FILE, "--why", "-v", "--no-cache")
HOSTILE = "k\x1b[31m\x1b]0;t\x07\x9b2J\u202e\x00[/red][bold]\r\x08x"


def case(function: Callable[[], Case]) -> Callable[[], Case]:
    """Registers a case under its name."""
    MADE[function.__name__] = function
    return function


def commands(*lines: tuple[str, ...]) -> list[Command]:
    """Command lines as commands."""
    return [Command(line, MORE_CODES.get(line[0], CODES)) for line in lines]


def trace(events: list[dict[str, Any]], **header: Any) -> Files:
    """A JSON trace."""
    document = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}],
        **header,
        "traceEvents": events,
    }
    return Files("trace.json", {"trace.json": json.dumps(document).encode()})


def export(made: Export, *statements: str) -> Files:
    """An nsys export, changed by SQL."""
    with tempfile.TemporaryDirectory() as name:
        path = made.write(Path(name) / "export.sqlite")
        database = sqlite3.connect(path)
        database.executescript(";".join(statements))
        database.commit()
        database.close()
        return Files("trace.sqlite", {"trace.sqlite": path.read_bytes()})


def steps(*inside: dict[str, Any]) -> list[dict[str, Any]]:
    """Three steps, each with a matmul; in the first, also other events."""
    events: list[dict[str, Any]] = list(inside)
    for step in range(3):
        at = 1000.0 * step
        events += [annotation(f"ProfilerStep#{step}", at, 990), op("aten::mm", at + 10, 60, external=step + 1, **{"Input Dims": [[64, 64], [64, 64]], "Input type": ["float", "float"]})]  # fmt: skip
        events += launched("ampere_sgemm_128x64_nn", at + 20, at + 100, 400, step + 1)
    return events


@case
def null_kernel_name() -> Case:
    return trace(steps({**kernel("k", 500, 90, 77), "name": None})), commands(WHY, SHOWN)


@case
def null_kernel_name_in_a_database() -> Case:
    files = export(small(), "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET demangledName = NULL, shortName = NULL")
    return files, commands(SHOWN, ("stats", FILE, "--no-cache"))


@case
def kernel_without_a_launch_beside_a_range() -> Case:
    made = small()
    made.kernel(90, 95, "void gemm<float>(T1)", 77)
    made.add("NVTX_EVENTS", start=5, end=70, text="forward", globalTid=GLOBAL_TID, eventType=59)
    made.add("NVTX_EVENTS", start=71, end=None, text="forward", globalTid=GLOBAL_TID, eventType=59)
    return export(made), commands(SHOWN, ("diagnose", FILE, "-v", "--no-why", "--no-cache"))


@case
def null_op_name() -> Case:
    files = trace(steps({**op("x", 5, 80, external=50), "name": None}, *launched("k", 30, 600, 9, 51)))
    return files, commands(("whatif", FILE, "--no-cache"), ("path", FILE, "--op", "aten::mm", "--no-cache"))


@case
def null_copy_name() -> Case:
    files = trace(steps(call("cudaMemcpyAsync", 200, 30, 60), {**copy("c", 210, 15, 60, 4096), "name": None}))
    return files, commands(SHOWN)


@case
def thread_without_id() -> Case:
    waiting = small().add("OSRT_API", start=20, end=40, globalTid=None, nameId=1, returnValue=0, nestingLevel=0)
    return export(waiting), commands(WHY, ("stats", FILE, "-r", "osrt_sum", "--no-cache"))


@case
def lone_surrogates_in_the_header() -> Case:
    devices = [{"id": 0, "name": "GPU \ud800", "computeMajor": 9}]
    files = trace(steps(), deviceProperties=devices, traceName="\udfff", displayTimeUnit="\ud800")
    return files, commands(WHY, SHOWN, ("sql", FILE, "select * from meta", "--no-cache"))


@case
def compiled_region_without_ops() -> Case:
    return trace(
        steps(annotation("Torch-Compiled Region: 0/0", 5, 300), op("Torch-Compiled Region: 0/0", 5, 300))
    ), commands(WHY)


@case
def hostile_names() -> Case:
    events = steps(
        op(HOSTILE, 400, 30, external=40), annotation(HOSTILE, 300, 200), *launched(HOSTILE, 410, 600, 90, 70)
    )
    files = trace(events, deviceProperties=[{"id": 0, "name": HOSTILE}], traceName=HOSTILE)
    lines = [
        ("roofline", FILE, "--by", "kernel", "--no-cache"),
        ("stats", FILE, "--format", "csv", "--no-cache"),
        ("path", FILE, "--no-cache"),
    ]
    return files, commands(SHOWN, WHY, *lines, ("sql", FILE, "select * from gpu", "--no-cache"), ("doctor", FILE, "-v"))


@case
def rows_numbered_to_the_end() -> Case:
    files = export(
        small(),
        "UPDATE StringIds SET id = id * 1000000000000000",
        "CREATE TABLE notes (x)",
        "INSERT INTO notes (rowid, x) VALUES (1, 'a'), (9223372036854775807, 'b')",
    )
    return files, commands(("scrub", FILE, "-o", "{output}.sqlite"), ("doctor", FILE))


@case
def table_without_row_numbers() -> Case:
    files = export(
        small(), "CREATE TABLE kv (k TEXT PRIMARY KEY, v) WITHOUT ROWID", "INSERT INTO kv VALUES ('password', 'x')"
    )
    return files, commands(("scrub", FILE, "-o", "{output}.sqlite"))


@case
def endless_view() -> Case:
    view = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS start, x AS end, zeroblob(1000000000) AS text FROM n"
    files = export(small(), "DROP TABLE IF EXISTS NVTX_EVENTS", f"CREATE VIEW NVTX_EVENTS AS {view}")
    return files, commands(WHY, ("doctor", FILE), ("scrub", FILE, "--check"))


@case
def endless_view_for_kernels() -> Case:
    view = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS start, x AS end, 0 AS deviceId, 7 AS streamId, 1 AS demangledName, 1 AS correlationId, 1 AS globalPid FROM n"
    files = export(
        small(), "DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL", f"CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS {view}"
    )
    return files, commands(WHY, ("doctor", FILE), ("scrub", FILE, "--check"))


@case
def computed_gigabytes() -> Case:
    files = export(
        small(),
        "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN name GENERATED ALWAYS AS (zeroblob(900000000)) VIRTUAL",
    )
    return files, commands(("diagnose", FILE, "--no-why", "--no-cache"), ("scrub", FILE, "--check"))


@case
def times_at_the_end_of_64_bits() -> Case:
    changes = (
        f"UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = {-(2**61)}, end = {2**61} WHERE rowid = 1",
        f"UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET end = {2**61} WHERE rowid = 2",
    )
    return export(small(), *changes), commands(WHY)


@case
def many_threads() -> Case:
    events = steps(*(op("aten::add", 5.0 * number, 3, thread=1000 + number) for number in range(1200)))
    return trace(events), commands(("diagnose", FILE, "--why", "--no-cache"))


@case
def long_kernel_name() -> Case:
    name = "void f<" * 20_000 + "int" + ">" * 20_000 + "(" * 5_000
    return trace(steps(*launched(name, 300, 600, 90, 70))), commands(("roofline", FILE, "--by", "kernel", "--no-cache"))


@case
def more_processes_than_devices() -> Case:
    rows = ", ".join(
        f"({50 + number}, {60 + number}, {number % 9}, 1, {number}, {number}, {GLOBAL_PID + (number << 24)}, 1, 1)"
        for number in range(300)
    )
    columns = "start, end, deviceId, contextId, streamId, correlationId, globalPid, demangledName, shortName"
    return export(small(), f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL ({columns}) VALUES {rows}"), commands(
        ("diagnose", FILE, "--no-cache")
    )


@case
def one_op_with_many_shapes() -> Case:
    events = [op("aten::view", 9.0 * number, 3, **{"Input Dims": [[number + 1]]}) for number in range(200)]
    return trace(steps(*events)), commands(("ops", FILE, "--group", "shape", "--sort", "gpu", "--no-cache"))


@case
def kernels_of_zero_length() -> Case:
    return trace([kernel("k", 5, 0, 1)]), [*commands(WHY), Command(("diagnosis", "1"), front=True)]


@case
def names_that_are_not_text() -> Case:
    names = Files("names.txt", {"names.txt": b"\xff\xfe gemm\n\xc2\x9b2J\n\xed\xa0\x80 k\n"})
    return names, [Command(("kernel", "-", "--json"), stdin=True), Command(("kernel", "-"), stdin=True)]


@case
def a_view_in_place_of_the_runs_of_a_history() -> Case:
    database = sqlite3.connect(":memory:")
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT"
    cells = "x AS id, x AS at, '/nowhere' AS project, 'train' AS name, hex(zeroblob(400000000)) AS label, x AS outcome"
    columns = f"{cells}, x AS metric, x AS device, x AS recordings, x AS numbers"
    database.executescript(f"PRAGMA user_version = 1; CREATE VIEW runs AS {endless} {columns} FROM n;")
    files = Files(HISTORY_FILE, {HISTORY_FILE: database.serialize()})
    return files, commands(("history", "train", "--folder", f"{HISTORY}/x", "--json"))


@case
def entries_of_a_snapshot_out_of_order() -> Case:
    document = snapshot_of_training()
    entries = document["device_traces"][0]
    entries.insert(-1, entries.pop(2))  # an allocation behind the free that follows it
    files = Files("trace.pickle", {"trace.pickle": pickle.dumps(document)})
    return files, commands(("memory", FILE, "-v"), ("memory", FILE, "--svg", "{output}.svg", "--json"))


@case
def lone_surrogates_in_the_frames_of_a_snapshot() -> Case:
    document = snapshot_of_training()
    document["device_traces"][0][0]["frames"] = [{"filename": "\ud800.py", "line": 1, "name": "\udfff"}]
    files = Files("trace.pickle", {"trace.pickle": pickle.dumps(document)})
    return files, commands(("memory", FILE, "-v", "--by", "line"), ("memory", FILE, "--json"))


@case
def a_long_label_of_ncu() -> Case:
    row = '"0","1","python","box","k","1","7","(1, 1, 1)","(2, 1, 1)","0","9.0","Occupancy","{}","%","31.5"'
    labels = ("Achieved O" + "ccupancy" * 9_000, "x [" * 30_000, "_GLOBAL__N__" * 9_000, " " * 90_000 + "]")
    page = "\n".join([texts.LOGS["csv"].splitlines()[0], *map(row.format, labels)])
    return Files("trace.csv", {"trace.csv": page.encode()}), commands(("dive", FILE))


@case
def names_like_pseudonyms() -> Case:
    names = ("opA" + "_" * 4_000 + "!", "fileA" + "_" * 4_000 + ".(1): f", "kernelB" + "_x_" * 900 + "é")
    kinds = ("cpu_op", "python_function", "kernel")
    ops = [{**op(name, 10.0 * at, 5), "cat": kind} for at, (name, kind) in enumerate(product(names, kinds))]
    return trace(steps(*ops)), commands(("scrub", FILE, "-o", "{output}.json"))


@case
def deep_lists_in_a_second_look() -> Case:
    look = companions.look()
    look["calls"]["op"][1] = json.loads("[" * 900 + "]" * 900)
    beside = {
        "manifest.json": {"traces": [{"file": "trace.json", "look": {"file": "trace.look.json.gz", "state": "done"}}]},
        "trace.look.json.gz": look,
    }
    files = trace(steps())
    files.content |= {name: json.dumps(document).encode() for name, document in beside.items()}
    return files, commands(("path", FILE, "--no-cache"))


def stored() -> dict[str, Callable[[], Case]]:
    """The cases in files: JSON with commands and the content, as text, JSON or SQL, and what lies beside it."""
    return {file.stem: lambda file=file: _read(file) for file in sorted(FOLDER.glob("*.json"))}  # type: ignore[misc]


def _read(file: Path) -> Case:
    told = json.loads(file.read_text(encoding="utf-8"))
    if "sql" in told:
        database = sqlite3.connect(":memory:")
        database.executescript(told["sql"])
        content = {"trace.sqlite": database.serialize()}
    else:
        content = {
            "trace.json": (told["text"] if "text" in told else json.dumps(told["document"])).encode(
                "utf-8", "surrogatepass"
            )
        }
    main = next(iter(content))
    content |= {name: json.dumps(document).encode() for name, document in told.get("beside", {}).items()}
    return Files(main, content), commands(*map(tuple, told["commands"]))
