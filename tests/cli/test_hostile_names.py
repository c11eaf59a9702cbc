"""No text of a file, and no file's name, reaches the terminal as anything but text."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest
from hostile_files import EVIL, hostile_kineto, hostile_nsys
from paths import ROOT

from warpline.analyses.stats import REPORTS
from warpline.cli.main import run
from warpline.cli.verbs import VERBS

NAME = "[red]\x1b]0;x\x07\u202e{}"
"""A file's name can hold the same."""
SGR = re.compile(r"\x1b\[[0-9;]*m")
OWN_MOVES = re.compile(r"\x1b\[(?:\?25[lh]|2K|1A)|\r(?!\n)")
"""How the spinner and the progress bar on stderr hide the cursor and clear their line."""
FILES = ("kineto", "nsys")
COMMANDS: dict[str, list[list[str]]] = {
    "diagnose": [["--why"], ["-v"]],
    "report": [["-f"]],
    "compare": [["-v"]],
    "stats": [["-r", ",".join(REPORTS)], ["-r", ",".join(REPORTS), "--format", "csv"]],
    "sql": [[]],
    "roofline": [[], ["--by", "kernel"]],
    "doctor": [[], ["-v"]],
    "scrub": [["--check"]],
    "path": [[], ["--op", "\x1b[5;7m"]],
    "budget": [[]],
    "whatif": [[], ["--fix", "\x1b[5;7m"]],
}
"""What each verb that reads a trace is asked; the others are asked about a file's name below."""
ASKED = [
    (verb, kind, (number + second) % 2 == 0)
    for number, verb in enumerate(COMMANDS)
    for second, kind in enumerate(FILES)
]
"""Each verb with each kind of file, once in colours and once without: both are written by the same two modules."""
JSON = [verb for verb in COMMANDS if verb not in {"sql"}]


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("hostile")
    files = {"kineto": hostile_kineto(folder), "nsys": hostile_nsys(folder)}
    return {kind: file.rename(folder / NAME.format(file.name)) for kind, file in files.items()}


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Verbs that write into the working directory write into one that goes away."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(params=[False, True], ids=["plain", "coloured"])
def colour(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, traces: dict[str, Path]) -> bool:
    # Each trace is read once, and asked about again from the cache.
    monkeypatch.setattr("warpline.sources.cache_folder.SMALL_FILE_BYTES", 0)
    monkeypatch.setenv("WARPLINE_CACHE", str(traces["kineto"].with_name("cache")))
    monkeypatch.setenv("COLUMNS", "150")
    monkeypatch.delenv("NO_COLOR", raising=False)
    if request.param:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm-256color")
    else:
        monkeypatch.delenv("FORCE_COLOR", raising=False)
    return bool(request.param)


def assert_sanitised(shown: str, colour: bool = False) -> None:
    """Only printable text, newlines and, if wanted, colours that are warpline's own."""
    if colour:
        assert "\x1b[5;7m" not in shown
        shown = OWN_MOVES.sub("", SGR.sub("", shown))
    found = {char for char in shown if not char.isprintable() and char != "\n"}
    assert not found
    assert "\u3164" not in shown
    shown.encode()


def asked(verb: str, options: list[str], trace: Path) -> Iterator[list[str]]:
    if verb == "sql":
        for table, style in (("gpu", "table"), ("threads", "table"), ("meta", "csv"), ("health", "csv"), ("no", "csv")):
            yield ["sql", str(trace), f"select * from {table}", "--format", style]
    yield [verb, *options, *[str(trace)] * (2 if verb == "compare" else 1)]


@pytest.mark.parametrize(("verb", "kind", "colour"), ASKED, indirect=["colour"])
def test_no_verb_lets_a_control_character_through(
    verb: str, kind: str, traces: dict[str, Path], colour: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    for options in COMMANDS[verb]:
        for command in asked(verb, options, traces[kind]):
            run(command)
            shown = capsys.readouterr()
            assert "internal-error" not in shown.err
            assert shown.out or shown.err
            assert_sanitised(shown.out + shown.err, colour)


@pytest.mark.parametrize("verb", VERBS)
def test_a_file_name_and_an_argument_are_text_too(
    verb: str, colour: bool, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    absent = str(tmp_path / NAME.format("absent.json"))
    before = {"run": ["--"], "demo": ["--steps"]}.get(verb, [])
    run([verb, *before, absent])
    shown = capsys.readouterr()
    assert "internal-error" not in shown.err
    assert_sanitised(shown.out + shown.err, colour)


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("verb", JSON)
def test_json_is_valid_exact_and_sanitised(
    verb: str, kind: str, traces: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    run([verb, "--json", str(traces[kind])])
    shown = capsys.readouterr()
    assert_sanitised(shown.out + shown.err)
    if shown.out:
        json.loads(shown.out)


def test_json_holds_the_names_as_they_are(traces: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    run(["sql", str(traces["kineto"]), "select name from gpu where kind = 'kernel'", "--json"])
    names = {row["name"] for row in json.loads(capsys.readouterr().out)}
    assert {EVIL[number] for number in (0, 1, 3, 4, 5, 7, 8, 9)} <= names


def test_a_spreadsheet_calculates_nothing(traces: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    run(
        ["sql", str(traces["kineto"]), "select distinct name, -1.5 as number, '-3' as text from gpu", "--format", "csv"]
    )
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("'=cmd") for line in lines)
    assert not any(line.startswith(("=", "+", "-", "@")) for line in lines)
    assert all(line.endswith(",-1.5,-3") for line in lines[1:])


def test_a_report_in_markdown_has_no_link_image_or_html(traces: dict[str, Path], tmp_path: Path) -> None:
    report = tmp_path / "report.md"
    assert run(["diagnose", str(traces["kineto"]), "-v", "-o", str(report)]) == 0
    text = report.read_text()
    assert_sanitised(text)
    outside = re.sub(r"(?ms)^(`{3,})[a-z]*$.*?^\1$", "", text)
    assert not re.search(r"(?<!\\)<img|(?<!\\)\[x\](?!\\)\(|https://evil", outside)


def test_a_plot_is_valid_xml(traces: dict[str, Path], tmp_path: Path) -> None:
    plot = tmp_path / "plot.svg"
    assert run(["roofline", str(traces["kineto"]), "--device", "H200", "--plot", str(plot)]) == 0
    ET.fromstring(plot.read_text())
    assert_sanitised(plot.read_text())


@pytest.mark.parametrize(
    ("command", "kind"),
    [(["diagnose", "--why"], "kineto"), (["path", "--op", "\x1b[5;7m"], "kineto")],
    ids=["diagnose", "error"],
)
def test_a_real_terminal_gets_colours_and_text_only(
    command: list[str], kind: str, traces: dict[str, Path], tmp_path: Path
) -> None:
    """stdout and stderr are a terminal: the spinner runs, too."""
    ours, theirs = pty.openpty()
    environment = {
        **os.environ,
        "TERM": "xterm-256color",
        "WARPLINE_CACHE": str(tmp_path),
        "PYTHONPATH": str(ROOT / "src"),
    }
    environment.pop("NO_COLOR", None)
    words = [sys.executable, "-m", "warpline", *command, str(traces[kind])]
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=environment) as program:
        os.close(theirs)
        shown = b""
        while piece := _read(ours):
            shown += piece
    os.close(ours)
    assert program.returncode in {0, 2}
    text = shown.decode().replace("\r\n", "\n")
    assert_sanitised(text, colour=True)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # the program has closed its side
        return b""
