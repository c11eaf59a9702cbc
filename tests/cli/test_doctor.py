"""`warpline doctor` as a user meets it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
from nsys_files import Export, small

from warpline.cli import doctor
from warpline.cli.main import run

FAILED = "Traceback (most recent call last):\nImportError: no module named basic\n"


@pytest.fixture
def empty(tmp_path: Path) -> str:
    return str(Export().error_output(FAILED).write(tmp_path / "empty.sqlite"))


@pytest.fixture
def healthy(tmp_path: Path) -> str:
    return str(small().write(tmp_path / "healthy.sqlite"))


def test_a_healthy_file_is_a_line_and_its_contents(healthy: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", healthy]) == 0
    printed = capsys.readouterr()
    title, contents, *_ = printed.out.splitlines()
    assert title == "healthy.sqlite: nothing missing or damaged"
    assert contents.strip() == "✓ contents: 4 CUDA calls, 2 kernels, 2 copies and memsets"
    assert printed.err == ""


def test_an_empty_file_is_explained(empty: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", empty]) == 1
    printed = capsys.readouterr().out
    assert "empty.sqlite: 1 problem" in printed
    assert "ImportError: no module named basic" in " ".join(printed.split())
    assert "→ run the program once without the profiler" in printed


def test_several_files_at_once(healthy: str, empty: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", healthy, empty, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "warpline.doctor/1"
    assert [entry["verdict"] for entry in document["examined"]] == ["ok", "problem"]
    finding, contents = document["examined"][1]["findings"]
    assert set(finding) == {"name", "state", "seen", "means", "do", "failure"}
    assert (finding["failure"], finding["state"]) == (1, "problem")
    assert (contents["name"], contents["seen"]) == ("contents", "no event")


def test_notes_are_named_and_explained_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = (
        small()
        .remark("Unable to collect CPU kernel IP samples. perf event paranoid level is 2.")
        .write(tmp_path / "n.sqlite")
    )
    assert run(["doctor", str(file)]) == 0
    title = capsys.readouterr().out.splitlines()[0]
    assert title == "n.sqlite: nothing missing or damaged; worth knowing: perf-paranoid (-v)"
    assert run(["doctor", "-v", str(file)]) == 0
    assert "Harmless for GPU profiling" in capsys.readouterr().out


def test_what_cannot_be_judged_is_inconclusive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "diary.txt").write_text("dear diary")
    assert run(["doctor", str(tmp_path / "diary.txt")]) == 4
    assert "1 unknown" in capsys.readouterr().out


def test_a_command_in_quotes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "nsys profile -t cuda,nvtx -s none docker run --gpus all img python a.py"]) == 1
    printed = capsys.readouterr().out
    assert "outside-the-container" in printed
    assert "type this instead:\n  docker run --gpus all" in printed
    assert printed.rstrip().endswith("python a.py")


def test_an_option_behind_a_command_in_quotes_is_not_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "nsys profile -t cuda,nvtx -s none -o out python a.py", "-v"]) == 0
    assert "--cpuctxsw=none" in capsys.readouterr().out


def test_a_command_after_two_dashes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--json", "--", "ncu", "-c", "1", "python", "a.py"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["examined"]
    assert entry["kind"] == "command"
    assert entry["corrected"] == "ncu -c 1 --target-processes all python a.py"


def test_this_machine(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(doctor, "_this_machine", cache(doctor._this_machine))  # it starts torch, which takes seconds
    code = run(["doctor", "--json"])
    (entry,) = json.loads(capsys.readouterr().out)["examined"]
    assert entry["kind"] == "machine"
    assert code == (1 if entry["verdict"] == "problem" else 0)
    assert run(["doctor", "-v"]) == code
    assert "disk" in capsys.readouterr().out
    checks = doctor._this_machine().checks
    assert {check.name for check in checks} >= {"torch", "disk"}
    assert [check.name for check in checks if not (check.state == "ok" or check.seen)] == []


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [(["absent.sqlite"], 1, "no-such-file"), (["nsys profile 'x"], 2, "bad-command")],
)
def test_mistakes_are_one_line(arguments: list[str], code: int, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", *arguments]) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"warpline: {word}: ")
    assert printed.err.count("\n") == 1


def test_a_command_needs_no_quotes(capsys: pytest.CaptureFixture[str]) -> None:
    run(["doctor", "nsys", "profile", "-t", "cuda", "-o", "out", "python", "train.py"])
    assert "--sample=none" in capsys.readouterr().out
    assert run(["doctor", "python3", "nowhere.py", "--lr", "1"]) == 4
    assert "There is nothing to check." in capsys.readouterr().out
