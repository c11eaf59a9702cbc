"""Every command that an answer suggests works as printed, from any folder: a word in capitals stands for an input."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from kineto_files import launched, write
from paths import DATA, ROOT, SUITES

from warpline.cli.main import run
from warpline.package_data import demo_trace

TRACES = (
    DATA / "kineto" / "layer_eager.json.gz",
    DATA / "nsys" / "graph_node.sqlite.gz",
    SUITES / "planted" / "boolean_mask.json.gz",
    demo_trace(),
)
ANSWERS = (
    *("diagnose TRACE", "diagnose TRACE -v", "diagnose TRACE --no-why", "whatif TRACE", "path TRACE", "budget TRACE"),
    *("ops TRACE", "parts TRACE", "memory TRACE", "roofline TRACE", "stats TRACE", "sql TRACE", "doctor TRACE"),
    *("dive TRACE", "compare TRACE TRACE", "scrub TRACE -f -o copy.json", "scrub TRACE --check"),
    *("export TRACE -f -o step.svg", "gate TRACE --budget step_ms<=1 --no-history"),
)
OTHERS = (
    *("demo", "demo -v", "bench --list", "lab", "device", "device H200", "explain lessons concepts sync-in-loop"),
    *("explain sm__throughput ampere_sgemm_128x64_nn", "metric sm__throughput", "kernel ampere_sgemm_128x64_nn"),
    *("roofline --flops 1e12 --bytes 1e9 --time 100us", "roofline --flops 1e12 --bytes 1e9 --time 100us --device H200"),
    *(f"dive {DATA / 'ncu' / 'triton.raw.csv.xz'}", f"diagnose {DATA / 'ncu' / 'triton.raw.csv.xz'}"),
    *(f"scrub {DATA / 'ncu' / 'triton.raw.csv.xz'}", f"memory {DATA / 'memory' / 'leak.snapshot.pickle.xz'}"),
    f"diagnose {DATA / 'memory' / 'leak.snapshot.pickle.xz'}",
    *(
        f"ladder {DATA / 'ladders' / 'optimisation-decode'}",
        f"doctor {DATA / 'nsys'}",
        f"doctor {ROOT / 'faults' / 'loop.py'}",
    ),
    *(f"diagnose {DATA / 'kineto'}", f"lint {ROOT / 'faults' / 'loop.py'}", "explain dispatch-bound"),
)
COMMAND = re.compile(
    r"\bwarpline ([a-z]+(?: (?!  )[^\n]*?)?)(?=  |$|;|, then | prints,| and warpline|\.?$)", re.MULTILINE
)
RECORDINGS = [
    *sorted(file for kind in ("kineto", "nsys") for file in (DATA / kind).glob("*.[jsx]*[gx]z")),
    *sorted((ROOT / "faults" / "recordings").rglob("*.json.gz"))[::45],
]
"""Real recordings of every kind, and some of each suite."""
PLACEHOLDER = re.compile(r"(?<![\w-])[A-Z]{2,}(?:\.[\w-]+)?(?![\w-])|…|\b[AB] [AB]\b")
NEEDS_A_GPU = {"lab", "bench", "run", "try"}


def suggested(text: str) -> list[str]:
    """The commands of an answer that can be run as they are."""
    found = [match[1].strip() for match in COMMAND.finditer(text)]
    return [one for one in dict.fromkeys(found) if not PLACEHOLDER.search(one) and "measure" not in one]


@pytest.mark.parametrize("answer", [*ANSWERS, *OTHERS])
def test_what_an_answer_suggests_can_be_typed(
    answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    for number, trace in enumerate(TRACES if "TRACE" in answer else TRACES[:1]):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        type_what_is_suggested(answer.replace("TRACE", shlex.quote(str(trace))), capsys)


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda file: file.name)
def test_what_a_diagnosis_suggests_can_be_typed(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.chdir(tmp_path)
    type_what_is_suggested(f"diagnose {shlex.quote(str(recording))}", capsys)
    type_what_is_suggested(f"diagnose -v {shlex.quote(str(recording))}", capsys)


def type_what_is_suggested(answer: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Type a command, and all commands that its answer suggests; what only a GPU can run is left out."""
    run(shlex.split(answer))
    printed = capsys.readouterr()
    for command in suggested(f"{printed.out}\n{printed.err}"):
        words = shlex.split(command)
        if words[0] not in NEEDS_A_GPU:
            code = run(words)
            assert code in {0, 3, 4}, f"{answer} suggests warpline {command}: {capsys.readouterr().err}"
            capsys.readouterr()


def test_a_suggested_path_with_spaces_is_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    trace = write(tmp_path, launched("gemm", 0, 10, 100, 1)).rename(tmp_path / "my trace.json")
    assert run(["diagnose", str(trace)]) == 0
    (again,) = [line for line in suggested(capsys.readouterr().out) if line.endswith("-v")]
    assert shlex.split(again) == ["diagnose", "my trace.json", "-v"]


def test_the_readme_installs_what_the_project_offers() -> None:
    """A missing package is installed by its own name, which works from a clone and from an install."""
    declared = (ROOT / "pyproject.toml").read_text()
    hints = {
        word
        for file in (ROOT / "src" / "warpline").rglob("*.py")
        for line in re.findall(r'"[^"]*pip install ([\w\s-]+?)[",]', file.read_text())
        for word in line.split()
    }
    assert {"starlette", "uvicorn", "mcp", "resvg-py", "ray", "fsspec", "ncu-report", "pandas", "pyarrow"} <= hints
    assert all(f'"{word}>=' in declared for word in hints - {"torch", "triton"})
    assert "pip install '.[all]'" in (ROOT / "README.md").read_text()
