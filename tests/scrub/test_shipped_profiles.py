"""What the project itself ships leaks nothing, and scrubbing changes no diagnosis."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from paths import DATA, RECORDINGS, ROOT, SHARED, SUITES

from warpline.cli.main import run
from warpline.scrub.file import check, scrub
from warpline.scrub.text import Scrubber
from warpline.sources.detect import Kind, detect

BUNDLED = ROOT / "src" / "warpline" / "data"
PROFILES = (Kind.KINETO, Kind.KINETO_GZ, Kind.NSYS_SQLITE, Kind.NSYS_SQLITE_GZ)
SHIPPED = sorted(
    path
    for folder in (BUNDLED, DATA, SUITES)
    for path in folder.rglob("*")
    if path.is_file() and "__pycache__" not in path.parts
)
SHARED_PROFILES = sorted(
    path
    for folder in ("public", "h200")
    for end in ("json.gz", "sqlite.gz")
    for path in (SHARED / folder).rglob(f"*.{end}")
    if detect(path) in PROFILES  # an execution trace is JSON too, and no profile
)


def test_there_is_something_to_look_at() -> None:
    assert len(SHIPPED) > 100
    assert BUNDLED / "demo.json.gz" in SHIPPED


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_everything_shipped_is_clean(path: Path) -> None:
    if detect(path) in PROFILES:
        assert check(path).leaks == ()
        return
    scrubber = Scrubber()
    text = path.read_text()
    scrubber.learn(text)
    assert [line for line in text.splitlines() if scrubber.clean(line)[1]] == []


def diagnosis(path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    code = run(["diagnose", str(path), "--json", "--no-cache"])
    printed = capsys.readouterr()
    return json.loads(printed.out) if code == 0 else (code, printed.err.replace(str(path), ""))


def without_texts(value: Any) -> Any:
    """Numbers, lengths and keys; texts may differ by what was redacted."""
    if isinstance(value, dict):
        return {key: without_texts(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [without_texts(entry) for entry in value]
    return "text" if isinstance(value, str) else value


def cleaned_texts(value: Any, scrubber: Scrubber) -> Any:
    if isinstance(value, dict):
        return {key: cleaned_texts(entry, scrubber) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [cleaned_texts(entry, scrubber) for entry in value]
    return scrubber.clean(value)[0] if isinstance(value, str) else value


def unpacked(path: Path) -> bytes:
    content = path.read_bytes()
    return gzip.decompress(content) if path.suffix == ".gz" else content


def assert_same_diagnosis(path: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where there is nothing to remove: then the file itself is the same, byte for byte, and so is its diagnosis."""
    result = scrub(path, folder / path.name)
    assert result.output is not None
    if not result.leaks and unpacked(path) == unpacked(result.output):
        return
    assert check(result.output).leaks == ()
    before, after = diagnosis(path, capsys), diagnosis(result.output, capsys)
    assert without_texts(before) == without_texts(after)
    assert cleaned_texts(before, Scrubber()) == cleaned_texts(after, Scrubber())


@pytest.mark.parametrize("path", [*RECORDINGS, BUNDLED / "demo.json.gz"], ids=lambda path: path.name)
def test_our_recordings_keep_their_diagnosis(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert_same_diagnosis(path, tmp_path, capsys)


def test_a_trace_full_of_leaks_keeps_its_diagnosis(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The bundled trace, as it would be had it been recorded in somebody's home folder."""
    text = gzip.decompress((BUNDLED / "demo.json.gz").read_bytes()).decode()
    private = text.replace('"name": "torch/', '"name": "/home/alice/env/lib/python3.11/site-packages/torch/')
    private = private.replace('"name": "demo_training.py', '"name": "/home/alice/acme/demo_training.py')
    assert private.count("/home/alice") > 100
    path = tmp_path / "private.json"
    path.write_text(private)
    folder = tmp_path / "out"
    folder.mkdir()
    assert_same_diagnosis(path, folder, capsys)
    assert "alice" not in (folder / "private.json").read_text()


@pytest.mark.shared
@pytest.mark.parametrize("path", SHARED_PROFILES, ids=lambda path: path.name)
def test_shared_profiles_keep_their_diagnosis(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert_same_diagnosis(path, tmp_path, capsys)
