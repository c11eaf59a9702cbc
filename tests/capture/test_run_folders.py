"""Run folders are private, a run that cannot start leaves none, and a folder is diagnosed as its first trace."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import stat
from pathlib import Path

import pytest
from paths import DATA

from warpline.capture.manifest import leave_nothing, make_private, new_folder
from warpline.capture.run_folder import MANIFEST
from warpline.cli.main import run
from warpline.trace.open import trace_of_folder

DEMO = DATA.parents[1] / "src" / "warpline" / "data" / "demo.json.xz"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def modes(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*")}


def test_folders_are_private_whatever_the_umask(folder: Path) -> None:
    before = os.umask(0)
    try:
        new_folder("one")
        new_folder("two", Path("deep") / "down")
    finally:
        os.umask(before)
    found = modes(folder)
    found.pop(".warpline/.gitignore")
    assert set(found.values()) == {0o700}
    assert len(found) == 5


def test_files_become_private_but_not_those_that_were_there(folder: Path) -> None:
    (folder / "mine.txt").write_text("")
    (folder / "mine.txt").chmod(0o644)
    before = set(folder.rglob("*"))
    (folder / "parts").mkdir(mode=0o755)
    (folder / "parts" / "trace.json").write_text("")
    (folder / "link").symlink_to("mine.txt")
    make_private(folder, before)
    assert modes(folder) == {"mine.txt": 0o644, "parts": 0o700, "parts/trace.json": 0o600, "link": 0o644}


@pytest.mark.parametrize(
    "words",
    [
        ["absent.py"],
        ["absent-program"],
        ["--with", "other", "true"],
        ["--with", "nsys", "true"],
        ["--with", "ncu", "true"],
        ["--name", "a/b", "--with", "nsys", "true"],
        ["--steps", "0", "true"],
        ["--with", "torch", "./broken"],
        ["--with", "torch", "-o", "new/folder", "./broken"],
    ],
)
def test_a_refused_run_leaves_nothing(words: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    (folder / "broken").write_text("#!/no/such/interpreter\n")
    (folder / "broken").chmod(0o755)
    assert run(["run", *words]) != 0
    assert [path.name for path in folder.iterdir()] == ["broken"]


def test_a_refused_run_leaves_earlier_runs_alone(folder: Path) -> None:
    first = new_folder("first")
    (first / MANIFEST).write_text("{}")
    leave_nothing(new_folder("second"))
    assert sorted(path.name for path in (folder / ".warpline" / "runs").iterdir()) == ["first"]
    assert (folder / ".warpline" / ".gitignore").exists()


def recorded(folder: Path, *names: str) -> Path:
    """A run's folder with these traces."""
    place = folder / "run"
    place.mkdir()
    for name in names:
        shutil.copy(DEMO, place / name)
    with gzip.open(place / "rank0.look.json.gz", "wt") as look:
        look.write("{}")
    (place / MANIFEST).write_text(json.dumps({"schema": "warpline.run/1", "files": list(names)}))
    return place


def test_a_run_of_one_process_is_diagnosed_by_its_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = recorded(folder, "trace.json.gz")
    assert run(["diagnose", str(place), "--json"]) == 0
    by_folder = capsys.readouterr()
    assert run(["diagnose", str(place / "trace.json.gz"), "--json"]) == 0
    assert capsys.readouterr().out == by_folder.out
    assert not by_folder.err
    assert run(["stats", str(place)]) == 0


def test_of_several_processes_the_first_is_diagnosed_and_the_others_are_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = recorded(folder, "trace.json.gz", "trace-2.json.gz")
    assert run(["diagnose", "run", "--no-why"]) == 0
    out, error = capsys.readouterr()
    assert "trace.json.gz" in out
    assert error == "warpline: this is trace.json.gz; 1 more trace there: warpline diagnose run/trace-2.json.gz\n"
    (place / MANIFEST).unlink()
    assert run(["diagnose", "run"]) == 1
    assert "which-trace" in capsys.readouterr().err
    (place / "trace-2.json.gz").unlink()
    (place / "baseline.json").write_text('{"schema": "another file"}')
    assert run(["diagnose", "run", "--no-why"]) == 0  # of two files one is a profile


def test_several_ranks_are_one_job(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded(folder, "rank0.json.gz", "rank1.json.gz")
    assert run(["diagnose", "run"]) == 0
    assert "2 ranks" in capsys.readouterr().out


def test_an_nsys_report_is_read_by_its_export(folder: Path) -> None:
    place = recorded(folder, "trace.nsys-rep")
    assert trace_of_folder(place) == (place / "trace.nsys-rep", [])
    (place / "trace.sqlite").write_text("")
    assert trace_of_folder(place) == (place / "trace.sqlite", [])


@pytest.mark.parametrize(
    "files", ['["../other.json.gz"]', '["/etc/trace.json"]', "3", "[3]", '["absent.json"]', "[" * 9999]
)
def test_a_manifest_that_names_other_files_is_not_followed(files: str, folder: Path) -> None:
    place = recorded(folder, "trace.json.gz")
    shutil.copy(DEMO, folder / "other.json.gz")
    (place / MANIFEST).write_text(f'{{"files": {files}}}')
    assert trace_of_folder(place) == (place / "trace.json.gz", [])
