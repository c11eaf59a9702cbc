"""`-` is a profile on standard input, for every command that takes one."""

from __future__ import annotations

import io
import json
import sys
import tempfile
from pathlib import Path

import pytest
from paths import DATA, DEMO

from warpline.cli.main import run
from warpline.sources.stdin import as_typed, spooled_stdin

NSYS = DATA / "nsys" / "graph_node.sqlite.gz"


class Input(io.TextIOWrapper):
    """Standard input that may be a terminal."""

    def __init__(self, content: bytes, terminal: bool = False) -> None:
        super().__init__(io.BytesIO(content))
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


def give(monkeypatch: pytest.MonkeyPatch, content: bytes, terminal: bool = False) -> None:
    monkeypatch.setattr(sys, "stdin", Input(content, terminal))


@pytest.mark.parametrize(
    "arguments",
    [
        ["-"],
        ["diagnose", "-"],
        ["stats", "-", "-r", "cuda_gpu_kern_sum"],
        ["sql", "-", "select count(*) n from gpu"],
        ["whatif", "-", "--fix", "cuda_graph"],
        ["path", "-"],
        ["budget", "-"],
        ["roofline", "-"],
        ["doctor", "-"],
    ],
    ids=" ".join,
)
def test_every_command_that_takes_a_trace_reads_standard_input(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    give(monkeypatch, (DATA / "kineto" / "block_fp32.json.gz").read_bytes())
    assert run([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("file", [DEMO, NSYS], ids=lambda file: file.name)
def test_the_kind_is_found_by_content(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["diagnose", str(file), "--json", "--no-why"])
    from_file = json.loads(capsys.readouterr().out)
    give(monkeypatch, file.read_bytes())
    run(["diagnose", "-", "--json", "--no-why"])
    assert json.loads(capsys.readouterr().out) == from_file


def test_what_to_type_next_names_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    give(monkeypatch, DEMO.read_bytes())
    assert run(["-"]) == 0
    assert "warpline diagnose - -v" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "terminal", "code"),
    [(b"", False, "empty-input"), (b"", True, "no-input"), (b"{}", False, "not-a-trace")],
)
def test_no_profile_there_is_one_line(
    content: bytes, terminal: bool, code: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    give(monkeypatch, content, terminal)
    assert run(["diagnose", "-"]) in {1, 2}
    assert capsys.readouterr().err.startswith(f"warpline: {code}: ")


@pytest.mark.parametrize("verb", ["diagnose", "doctor"])
def test_a_foreign_trace_there_is_named_so_too(
    verb: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    give(monkeypatch, b'[{"ph": "X", "cat": "async", "name": "x", "pid": 1, "tid": 1, "ts": 1, "dur": 1}]')
    run([verb, "-"])
    shown = "".join(capsys.readouterr())
    assert "standard input is a Chrome trace" in " ".join(shown.split())
    assert tempfile.gettempdir() not in shown


def test_a_file_goes_by_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    give(monkeypatch, b"{}")
    monkeypatch.chdir(DEMO.parent)
    assert as_typed(spooled_stdin()) == "-"
    assert as_typed(DEMO) == DEMO.name
