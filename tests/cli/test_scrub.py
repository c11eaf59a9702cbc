"""``warpline scrub`` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kineto_files import frame, launched, write

from warpline.cli.main import run
from warpline.scrub.tally import REASONS

SECRET = "correct" + "horse"


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    events = [*launched("gemm", 10, 20, 10, 1), frame("/home/alice/x.py(1): f", 0, 1, 1, None)]
    return write(tmp_path, events, host_name="crick", metadata={"password": SECRET})


def test_check_names_places_and_never_values(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["scrub", "--check", str(trace)]) == 1
    printed = capsys.readouterr()
    assert "metadata" in printed.out
    assert "traceEvents[].name" in printed.out
    assert f"kernel  {REASONS['kernel']}" in printed.out
    assert "warpline scrub" in printed.out.splitlines()[-1]
    for value in (SECRET, "alice", "crick"):
        assert value not in printed.out + printed.err
    assert [path.name for path in trace.parent.iterdir()] == ["trace.json"]


def test_scrub_writes_into_the_working_directory_and_the_result_is_clean(
    trace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = trace.parent / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert run(["scrub", str(trace)]) == 0
    printed = capsys.readouterr()
    assert "trace.scrubbed.json written" in printed.out
    # 8 of the call, 11 of the kernel, 8 of the frame, 3 of the header.
    assert printed.err == "30 values kept, 2 pseudonymised, 2 dropped\n"
    assert [path.name for path in folder.iterdir()] == ["trace.scrubbed.json"]
    assert run(["scrub", "--check", "trace.scrubbed.json"]) == 0
    assert "is clean" in capsys.readouterr().out


def test_json_follows_its_schema(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["scrub", "--check", "--json", "--keep", "host_name", str(trace)]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer == {
        "schema": "warpline.scrub/2",
        "file": str(trace),
        "format": "kineto",
        "output": None,
        "clean": False,
        "keep": ["host_name"],
        "counts": {"kept": 31, "pseudonymised": 2, "dropped": 1},
        "texts": [{"kind": kind, "count": 1, "reason": REASONS[kind]} for kind in ("kernel", "call")],
        "changes": [
            {"action": "dropped", "place": "metadata", "count": 1},
            {"action": "pseudonymised", "place": "deviceProperties.name", "count": 1},
            {"action": "pseudonymised", "place": "traceEvents[].name", "count": 1},
        ],
    }


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
    "a field that is not there": (["--keep", "shoes", "TRACE"], 2, "no-such-field"),
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
