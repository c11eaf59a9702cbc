"""What the project itself ships leaks nothing, and scrubbing changes no diagnosis."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import lzma
import shutil
from pathlib import Path
from typing import Any

import pytest
from paths import DATA, RECORDINGS, ROOT, SHARED, SUITES

from warpline.cli.main import run
from warpline.scrub.file import check, scrub

BUNDLED = ROOT / "src" / "warpline" / "data"
SHIPPED = sorted(
    path
    for folder in (BUNDLED, DATA, SUITES)
    for path in folder.rglob("*")
    if path.is_file() and "__pycache__" not in path.parts
)
PRIVATE = (
    *(
        b"/home/",
        b"/Users/",
        b"/scratch/",
        b"HOSTNAME=",
        b"LOGNAME=",
        b"PASSWORD=",
        b"SECRET_",
        b"API_KEY=",
        b"PRIVATE KEY",
    ),
    *(b"ghp_", b"hf_", b"AKIA", b"xoxb-", b"://"),
)
SHARED_PROFILES = (
    "public/kineto/hta_cpu_only.json.gz",
    "public/kineto/tracelens_h100_bert_small.json.gz",
    "public/kineto/tracelens_mi300_compile_triton.json.gz",
    "public/kineto/tracelens_vllm_graph_replay.json.gz",
    "public/wild/nsys-ai_mock.sqlite.gz",
    "public/nsys/pipit_saxpy-mpi.sqlite.gz",
    "hostile/null_op_name_whatif.json.gz",
    "hostile/surrogate_meta.json.gz",
)
"""Small ones of every kind: scrubbing one and diagnosing it twice takes seconds."""
WORDS = ("rule", "cause", "fix", "code", "severity", "confidence", "source", "schema")
"""Keys whose texts are part of the answer; other texts quote names of the profile."""


def diagnosis(path: Path) -> Any:
    """The diagnosis as JSON; the exit code and the error's code where there is none."""
    printed, said = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
        code = run(["diagnose", str(path), "--json", "--no-cache"])
    return json.loads(printed.getvalue()) if code == 0 else [code, said.getvalue().split(":")[1]]


def differences(before: Any, after: Any, place: str = "") -> list[str]:
    """The places in which two answers differ, names aside."""
    if isinstance(before, dict) and isinstance(after, dict):
        keys = {**before, **after}
        return [each for key in keys for each in differences(before.get(key), after.get(key), f"{place}.{key}")]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True))
        return [each for number, (one, other) in pairs for each in differences(one, other, f"{place}[{number}]")]
    if isinstance(before, str) and isinstance(after, str) and place.rpartition(".")[2] not in WORDS:
        return []
    return [] if before == after else [f"{place}: {before!s:.60} became {after!s:.60}"]


def changed_by_scrubbing(path: Path, folder: Path) -> list[str]:
    """Scrub a copy of a profile; how its diagnosis changed, and what a second scrubbing would change."""
    alone = folder / path.name  # without the files that may stand beside it
    shutil.copyfile(path, alone)
    output = folder / f"scrubbed.{path.name}"
    scrub(alone, output)
    again = [f"{change.place} is not clean" for change in check(output).changes]
    return again + differences(diagnosis(alone), diagnosis(output))


def test_there_is_something_to_look_at() -> None:
    assert len(SHIPPED) > 100
    assert BUNDLED / "demo.json.xz" in SHIPPED


def test_what_is_shipped_holds_no_private_text() -> None:
    found = {}
    for path in SHIPPED:
        raw = path.read_bytes()
        text = gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw
        if path.suffix not in (".py", ".md"):
            found.update({(path.name, needle): 1 for needle in PRIVATE if needle in text})
    assert found == {}


@pytest.mark.parametrize("path", [*RECORDINGS, BUNDLED / "demo.json.xz"], ids=lambda path: path.name)
def test_our_recordings_keep_their_diagnosis(path: Path, tmp_path: Path) -> None:
    assert changed_by_scrubbing(path, tmp_path) == []


def test_a_trace_full_of_leaks_keeps_its_diagnosis(tmp_path: Path) -> None:
    """The bundled trace, as it would be had it been recorded in somebody's home folder."""
    text = lzma.decompress((BUNDLED / "demo.json.xz").read_bytes()).decode()
    private = text.replace('"name": "torch/', '"name": "/home/alice/env/lib/python3.11/site-packages/torch/')
    private = private.replace('"name": "demo_training.py', '"name": "/home/alice/acme/demo_training.py')
    assert private.count("/home/alice") > 100
    path = tmp_path / "private.json"
    path.write_text(private)
    output = tmp_path / "out.json"
    scrub(path, output)
    assert "alice" not in output.read_text()
    folder = tmp_path / "compared"
    folder.mkdir()
    assert changed_by_scrubbing(path, folder) == []


@pytest.mark.shared
@pytest.mark.parametrize("name", SHARED_PROFILES)
def test_shared_profiles_keep_their_diagnosis(name: str, tmp_path: Path) -> None:
    assert changed_by_scrubbing(SHARED / name, tmp_path) == []
