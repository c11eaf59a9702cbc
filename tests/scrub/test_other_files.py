"""Secrets in files that are no traces: refused in one line, with nothing written, or gone where a file passes for one."""

from __future__ import annotations

import gzip
import json
import lzma
import pickle
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ncu_files import block, message
from ncu_files import report as ncu_report
from nsys_files import small
from planted_secrets import survivors, texts
from snapshot_files import entry, training

from warpline.capture.run_folder import MANIFEST
from warpline.cli.main import run

PAGE = '"ID","Process ID","Process Name","Host Name","Kernel Name","Metric Name","Metric Unit","Metric Value"\n'


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def csv_page(cells: Callable[[str], list[str]]) -> bytes:
    rows = [",".join(map(quoted, ["0", "1", *cells(text)])) for text in texts()]
    return (PAGE + "\n".join(rows)).encode()


def report(secret: bytes) -> bytes:
    session = message({8: message({1: b"Nsight Compute Target", 2: secret}), 11: b"ncu -o x python train.py " + secret})
    return ncu_report(block(1, secret, session, (4321, secret.decode())))


def snapshot(plant: Callable[[dict[str, Any], str], object]) -> bytes:
    made = training()
    for text in texts():
        plant(made, text)
    return pickle.dumps(made)


def frames(text: str) -> list[dict[str, Any]]:
    return [{"filename": f"/srv/{text}/train.py", "line": 1, "name": text}]


ALL = "\n".join(texts())
FILES: dict[str, tuple[str, bytes]] = {
    "CSV, process": ("page.csv", csv_page(lambda text: [text, "box", "gemm", "Duration", "us", "1"])),
    "CSV, host": ("page.csv", csv_page(lambda text: ["python", text, "gemm", "Duration", "us", "1"])),
    "CSV, kernel": ("page.csv", csv_page(lambda text: ["python", "box", text, "Duration", "us", "1"])),
    "CSV, metric": ("page.csv", csv_page(lambda text: ["python", "box", "gemm", text, text, text])),
    "CSV, log around it": ("page.csv", ("==PROF== Connected\n" + ALL + "\n" + PAGE).encode()),
    "report": ("report.ncu-rep", report(ALL.encode())),
    "snapshot, frames": (
        "snapshot.pickle",
        snapshot(lambda made, text: made["device_traces"][0].append(entry("alloc", 1, 1, 1, frames(text)))),
    ),
    "snapshot, settings": ("snapshot.pickle", snapshot(lambda made, text: made.update({text: text}))),
    "snapshot, metadata": (
        "snapshot.pickle",
        snapshot(lambda made, text: made["device_traces"][0].append({"user_metadata": text, "compile_context": text})),
    ),
    "manifest": (MANIFEST, json.dumps({"schema": "warpline.run/1", "command": texts(), "env": texts()}).encode()),
    "baseline": ("base.json", json.dumps({"schema": "warpline.baseline/1", "runs": texts()}).encode()),
    "execution trace": ("et.json", json.dumps({"schema": "1.1.1-chakra.0.0.4", "nodes": texts()}).encode()),
    "log": ("output.log", ALL.encode()),
    "program": ("train.py", ALL.encode()),
}
PACKINGS: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}


def history(folder: Path) -> Path:
    path = folder / "history.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE runs (id INTEGER PRIMARY KEY, project TEXT, label TEXT, numbers TEXT)")
    connection.executemany("INSERT INTO runs VALUES (NULL, ?, ?, ?)", [(text, text, text) for text in texts()])
    connection.commit()
    connection.close()
    return path


def refused(path: Path, capsys: pytest.CaptureFixture[str], *more: str) -> None:
    folder = path.parent
    before = sorted(folder.rglob("*"))
    assert run(["scrub", str(path), *more]) == 1
    shown = capsys.readouterr()
    assert not shown.out
    assert shown.err.startswith("warpline: ")
    assert shown.err.count("\n") == 1
    assert survivors(shown.err.encode()) == []
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("place", FILES)
def test_other_files_are_refused(
    place: str, packing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    name, content = FILES[place]
    path = tmp_path / (name + packing)
    path.write_bytes(PACKINGS[packing](content))
    assert packing or survivors(content), "nothing was planted"
    for how in (["-o", str(tmp_path / "out")], ["--in-place"], ["--check"], ["--keep", "names"], []):
        refused(path, capsys, *how)
    assert path.read_bytes() == PACKINGS[packing](content) or packing == ".gz"  # gzip writes the time


def test_a_history_and_a_run_folder_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused(history(tmp_path), capsys, "-o", str(tmp_path / "out"))
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / MANIFEST).write_bytes(FILES["manifest"][1])
    (folder / "output.log").write_text(ALL)
    refused(folder, capsys, "-o", str(tmp_path / "out"))


def test_a_file_that_passes_for_a_trace_keeps_nothing_else(tmp_path: Path) -> None:
    manifest = {"schema": "warpline.run/1", "command": texts(), "env": {text: text for text in texts()}}
    posing = tmp_path / "posing.json"
    posing.write_text(json.dumps({**manifest, "traceEvents": [], "baseline": texts()}))
    assert run(["scrub", str(posing), "-o", str(tmp_path / "out.json")]) == 0
    assert survivors((tmp_path / "out.json").read_bytes()) == []
    export = small().write(tmp_path / "export.sqlite")
    connection = sqlite3.connect(export)
    connection.execute("CREATE TABLE runs (id INTEGER PRIMARY KEY, project TEXT)")
    connection.executemany("INSERT INTO runs VALUES (NULL, ?)", [(text,) for text in texts()])
    connection.commit()
    connection.close()
    assert run(["scrub", str(export), "-o", str(tmp_path / "out.sqlite")]) == 0
    assert survivors((tmp_path / "out.sqlite").read_bytes()) == []
