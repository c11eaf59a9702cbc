"""Words on the command line that are not UTF-8: a file may have such a name; any other word is refused."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import msgspec
import pytest
from paths import ROOT

from warpline.cli.main import Verbs, app, run
from warpline.cli.verbs import VERBS

TRACE = ROOT / "faults" / "recordings" / "planted" / "item_per_layer.plain.json.gz"
BYTE = os.fsdecode(b"\xff")
FREE = {
    "run words",
    "run tool_arguments",
    "try words",
    "doctor subjects",
    "bench what",
    "watch command",
    "gate baseline",
}
"""Words of programs, and what may name a file."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a trace under a name that is text, and one under a name that is none."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(TRACE, "t.json.gz")
    shutil.copy(TRACE, f"x{BYTE}.json.gz")
    return tmp_path


def parameters(name: str, command: click.Command) -> list[tuple[str, click.Parameter]]:
    found = [(f"{name} {one.name}", one) for one in command.params]
    if isinstance(command, click.Group):
        found += [row for inner, one in command.commands.items() for row in parameters(f"{name} {inner}", one)]
    return found


@pytest.mark.parametrize("verb", VERBS)
def test_every_word_is_text_a_file_or_one_of_a_program(verb: str) -> None:
    assert isinstance(app, Verbs)
    command = app.get_command(click.Context(app), verb)
    assert command is not None
    for name, one in parameters(verb, command):
        if one.type is click.UNPROCESSED:
            assert name in FREE
        elif isinstance(one.type, click.types.StringParamType):
            with pytest.raises(click.UsageError, match="is not UTF-8"):
                one.type.convert(BYTE, one, None)


@pytest.mark.parametrize(
    "words",
    [
        ["sql", "t.json.gz", f"select '{BYTE}' a"],
        ["sql", "t.json.gz", f"select '{BYTE}' a", "--json"],
        ["gate", "t.json.gz", "--budget", "step_ms<=12", "--label", BYTE],
        ["gate", "t.json.gz", "--budget", "step_ms<=12", "--name", BYTE],
        ["history", BYTE],
        ["baseline", "save", BYTE, "t.json.gz"],
        ["explain", BYTE],
        ["whatif", "t.json.gz", "--fix", BYTE],
    ],
)
def test_a_word_that_is_no_text_is_one_line(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words) == 2
    out, err = capsys.readouterr()
    assert err.startswith("warpline: usage: ") and "is not UTF-8" in err and err.count("\n") == 1
    assert ("--json" in words) == bool(out)
    if out:
        assert msgspec.json.decode(out)["error"]["code"] == "usage"


def test_a_file_with_such_a_name_is_read_and_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = f"x{BYTE}.json.gz"
    assert run(["diagnose", file, "-o", f"r{BYTE}.md"]) == 0
    assert run(["report", file, "-o", f"r{BYTE}.html"]) == 0
    assert (folder / f"r{BYTE}.md").exists() and (folder / f"r{BYTE}.html").read_text(encoding="utf-8")
    assert run(["baseline", "save", "good", file, "--folder", f"b{BYTE}"]) == 0
    capsys.readouterr()
    for words in (["compare", file, file], ["ladder", file, file], ["roofline", file], ["scrub", file, "--check"]):
        run([*words, "--json"])
        msgspec.json.decode(capsys.readouterr().out)


def test_the_history_of_a_folder_with_such_a_name_is_kept(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / f"f{BYTE}").mkdir()
    monkeypatch.chdir(f"f{BYTE}")
    assert run(["gate", "../t.json.gz", "--budget", "step_ms<=1000", "--name", "train"]) == 0
    capsys.readouterr()
    assert run(["history", "train", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["runs"]) == 1


def test_a_program_with_such_a_name_is_recorded(folder: Path) -> None:
    (folder / f"p{BYTE}.py").write_text("print('ran')")
    words = [sys.executable, "-m", "warpline", "run", "-o", "out", "--", sys.executable, f"p{BYTE}.py"]
    answer = subprocess.run(words, capture_output=True, check=False, timeout=120)
    assert b"ran" in answer.stdout and b"internal-error" not in answer.stderr
    msgspec.json.decode((folder / "out" / "manifest.json").read_bytes())
