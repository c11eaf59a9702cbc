"""A verb is an analysis, a report, a command and one entry of the table: the page says so, and its code runs."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from kineto_files import annotation, call, kernel, write
from paths import ROOT

from warpline import analyses, cli, reports
from warpline.cli.main import run
from warpline.cli.verbs import VERBS, Verb

ANALYSIS, REPORT, COMMAND, ENTRY = re.findall(
    r"^```python\n(.*?)^```$", (ROOT / "docs" / "adding-a-verb.md").read_text(), flags=re.MULTILINE | re.DOTALL
)
ROOMS = {analyses: ANALYSIS, reports: REPORT, cli: COMMAND}


@pytest.fixture
def verb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The files of the page beside warpline's own, and its entry in the table."""
    for room, text in ROOMS.items():
        folder = tmp_path / room.__name__
        folder.mkdir()
        (folder / "streams.py").write_text(text)
        monkeypatch.setattr(room, "__path__", [*room.__path__, str(folder)])
    page: dict[str, Verb] = {}
    exec(ENTRY, {"Verb": Verb}, page)
    monkeypatch.setitem(VERBS, "streams", page["STREAMS"])
    yield
    for room in ROOMS:
        sys.modules.pop(f"{room.__name__}.streams", None)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Stream 7 is busy for 30 of 100 µs, stream 8 for 90: its two kernels overlap by 10 µs."""
    events = [annotation("ProfilerStep#0", 0, 100)]
    for number, (start, length, stream) in enumerate([(0, 30, 7), (10, 50, 8), (50, 50, 8)], 1):
        events.append(call("cudaLaunchKernel", start, 1, number))
        events.append(kernel("k", start, length, number, stream=stream))
    return write(tmp_path, events)


def test_its_json_is_the_answer_worked_out_on_paper(
    verb: None, trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*VERBS["streams"].words(TRACE=str(trace)), "--json", "--no-cache"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["schema"] == "warpline.streams/1"
    assert [(one["stream"], one["busy_ns"]) for one in answer["streams"]] == [(8, 90_000), (7, 30_000)]


def test_the_terminal_and_a_file_show_the_same_report(
    verb: None, trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["streams", str(trace), "--no-cache"]) == 0
    assert "device 0, stream 8" in capsys.readouterr().out
    assert run(["streams", str(trace), "--no-cache", "-o", str(tmp_path / "streams.md")]) == 0
    assert "| device 0, stream 8 | 90.0 µs | 90.0 % |" in (tmp_path / "streams.md").read_text()


def test_the_help_lists_it_with_the_first_line_of_its_docstring(verb: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    assert VERBS["streams"].help in capsys.readouterr().out
    assert run(["streams", "--help"]) == 0
    assert VERBS["streams"].help in capsys.readouterr().out
