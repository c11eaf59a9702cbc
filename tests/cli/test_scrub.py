"""``warpline scrub`` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kineto_files import frame, launched, write

from warpline.cli.main import run

SECRET = "correct" + "horse"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    events = [*launched("gemm", 10, 20, 10, 1), frame("/home/alice/x.py(1): f", 0, 1, 1, None)]
    return write(tmp_path, events, host_name="crick", metadata={"password": SECRET})


def test_check_names_kinds_and_places_and_never_values(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["scrub", "--check", str(trace)]) == 1
    printed = capsys.readouterr()
    assert "metadata.password" in printed.out
    assert "traceEvents[].name" in printed.out
    assert "warpline scrub" in printed.out.splitlines()[-1]
    for value in (SECRET, "alice", "crick"):
        assert value not in printed.out + printed.err
    assert [path.name for path in trace.parent.iterdir()] == ["trace.json"]


def test_scrub_writes_beside_and_the_result_is_clean(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["scrub", str(trace)]) == 0
    output = trace.with_name("trace.scrubbed.json")
    assert str(output) in capsys.readouterr().out
    assert run(["scrub", "--check", str(output)]) == 0
    assert "is clean" in capsys.readouterr().out


def test_json_follows_its_schema(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["scrub", "--check", "--json", "--keep", "host", str(trace)]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert {key: answer[key] for key in ("schema", "file", "format", "output", "clean", "kept")} == {
        "schema": "warpline.scrub/1",
        "file": str(trace),
        "format": "kineto",
        "output": None,
        "clean": False,
        "kept": ["host"],
    }
    assert answer["leaks"] == [
        {"kind": "token", "place": "metadata.password", "count": 1},
        {"kind": "user", "place": "traceEvents[].name", "count": 1},
    ]


def test_output_and_in_place(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = trace.with_name("shared.json.gz")
    assert run(["scrub", str(trace), "-o", str(target), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["output"] == str(target)
    assert run(["scrub", str(trace), "-o", str(target)]) == 2
    assert capsys.readouterr().err.startswith("warpline: would-overwrite: ")
    assert run(["scrub", str(trace), "-o", str(target), "-f"]) == 0
    assert run(["scrub", str(trace), "--in-place"]) == 0
    assert run(["scrub", "--check", str(trace)]) == 0


MISTAKES = {
    "absent": (["absent.json"], 1, "no-such-file"),
    "check and output": (["--check", "-o", "x.json", "TRACE"], 2, "nothing-written"),
    "check in place": (["--check", "--in-place", "TRACE"], 2, "nothing-written"),
    "two outputs": (["--in-place", "-o", "x.json", "TRACE"], 2, "two-outputs"),
    "unknown kind": (["--keep", "shoes", "TRACE"], 2, "usage"),
    "a folder": (["."], 1, "cannot-scrub"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_one_line(mistake: str, trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, code, word = MISTAKES[mistake]
    assert run(["scrub", *(str(trace) if part == "TRACE" else part for part in arguments)]) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"warpline: {word}: ")
    assert printed.err.count("\n") == 1
