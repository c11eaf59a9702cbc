"""`warpline run` as a user meets it: the program's own output and exit code, then the diagnosis."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from paths import DATA, ROOT

from warpline.capture.__main__ import _parser
from warpline.capture.launch import Ending
from warpline.capture.run import Run
from warpline.cli.main import run
from warpline.cli.run import RunAnswer, put_run
from warpline.errors import WarplineError
from warpline.sources.stdin import as_typed

EXAMPLES = ROOT / "docs" / "examples"
FEW = ("--skip", "3", "--warmup", "1", "--steps", "2")
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


PATIENT = ("--after", "600")
"""A slow machine must not open the window of time before the first step."""


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}


def warpline(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "warpline", "run", *PATIENT, *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=600,
        env=environment(),
        check=False,
    )


@needs_torch
def test_a_program_is_run_recorded_and_diagnosed_and_no_gpu_is_said_to_be_in_it(tmp_path: Path) -> None:
    done = warpline(tmp_path, "--name", "first", *FEW, str(EXAMPLES / "training.py"), "12")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("step 0: loss")
    assert "trained\ntrace.json.gz · no GPU activity · 2 steps" in done.stdout
    assert "No GPU operations or CUDA calls are recorded" in done.stdout
    assert "warpline: the run is in .warpline/runs/first" in done.stderr
    assert sorted(path.name for path in (tmp_path / ".warpline/runs/first").iterdir()) == [
        "manifest.json",
        "trace.json.gz",
        "trace.look.json.gz",
        "trace.stacks.json.gz",
    ]


@needs_torch
def test_json_is_the_only_thing_on_stdout_and_holds_manifest_and_diagnosis(tmp_path: Path) -> None:
    done = warpline(tmp_path, "--json", *FEW, str(EXAMPLES / "inference.py"), "14")
    answer = json.loads(done.stdout)
    assert "seen 224" in done.stderr
    assert answer["schema"] == "warpline.run/1"
    assert answer["exit_code"] == done.returncode == 0
    assert answer["diagnosis"]["schema"] == "warpline.diagnosis/1"
    assert answer["diagnosis"]["trace"]["steps"] == 2
    assert [entry["code"] for entry in answer["diagnosis"]["trace"]["health"]] == ["no-gpu-work"]
    assert answer["nothing"] is None
    written = json.loads((Path(answer["folder"]) / "manifest.json").read_text())
    assert written == {key: answer[key] for key in written}


@needs_torch
def test_the_trace_of_a_programs_own_profiler_is_diagnosed_instead(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "import torch\n"
        "with torch.profiler.profile() as p:\n    torch.randn(8, 8) @ torch.randn(8, 8)\n"
        "p.export_chrome_trace('mine.json')\n"
    )
    done = warpline(tmp_path, "own.py")
    assert done.returncode == 0, done.stderr
    assert "mine.json · no GPU activity" in done.stdout


def test_a_program_without_torch_says_what_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake = tmp_path / "python3"
    fake.write_text("#!/bin/sh\nexit 1\n")
    fake.chmod(0o755)
    (tmp_path / "train.py").touch()
    assert run(["run", "--", str(fake), str(tmp_path / "train.py")]) == 1
    assert capsys.readouterr().err.startswith("warpline: no-torch: the program's Python (python3) has no torch")


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (["run"], 2, "no-program"),
        (["run", "absent.py"], 2, "no-program"),
        (["run", "--", sys.executable, "absent.py"], 2, "no-program"),
        (["run", "--with", "gprof", "--", "sh"], 2, "unknown-tool"),
        (["run", "--steps", "0", "--", "sh"], 2, "usage"),
        (["run", "--container", "image"], 2, "no-program"),
        (["run", "--container", "", "train.py"], 2, "no-program"),
        (["run", "--container", "image", "--output", "there", "train.py"], 2, "no-output"),
        (["run", "--exec", "--", "sh"], 2, "no-container"),
        (["run", "--name", "../there", "--with", "torch", "--", "sh"], 2, "bad-name"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], code: int, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"warpline: {word}")
    assert printed.err.count("\n") == 1


def test_a_missing_nsys_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("WARPLINE_NSYS", "/gone/nsys")
    assert run(["run", "--with", "nsys", "--", "sh"]) == 1
    assert "nsys-missing" in capsys.readouterr().err


@pytest.mark.parametrize(("tool", "flag"), [("nsys", "--trace"), ("ncu", "--section")])
def test_flags_are_explained_where_the_tool_is_not_installed(
    tool: str, flag: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(f"WARPLINE_{tool.upper()}", f"/gone/{tool}")
    assert run(["run", "--with", tool, "--explain", "--", "sh"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"{tool} ")
    assert flag in printed


@pytest.fixture
def fake_nsys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An nsys that says what it was asked, runs the program and leaves nothing."""
    nsys = tmp_path / "nsys"
    nsys.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && { echo "NVIDIA Nsight Systems version 2025.1.1.1-1v0"; exit; }\n'
        'echo "$@" > asked\nwhile [ "${1#-}" != "$1" ] || [ "$1" = profile ]; do shift; done\nexec "$@"\n'
    )
    nsys.chmod(0o755)
    monkeypatch.setenv("WARPLINE_NSYS", str(nsys))
    return nsys


def test_nsys_runs_the_program_and_an_absent_report_is_said(
    tmp_path: Path, fake_nsys: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["run", "--with", "nsys", "--", "sh", "-c", "echo ran; exit 5"]) == 5
    printed = capfd.readouterr()
    assert printed.out == "ran\n"
    assert "warpline: " in printed.err
    asked = (tmp_path / "asked").read_text()
    assert "--duration=10 --kill=none" in asked
    assert asked.endswith("sh -c echo ran; exit 5\n")


def test_explain_gives_every_flag_a_reason(fake_nsys: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", "--with", "nsys", "--explain", "--json", "--", sys.executable, "-m", "x"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert "--capture-range=cudaProfilerApi" in answer["command"]
    assert all(flag["why"] for flag in answer["flags"])


def test_the_container_command_is_printed_to_be_pasted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert (
        run(["run", "--container", "image:1", "--steps", "3", "--no-shapes", "-m", "package.train", "--lr", "1"]) == 0
    )
    printed = capsys.readouterr().out
    assert printed.startswith("docker run --rm \\\n  --gpus all \\\n")
    assert printed.endswith(
        "image:1 \\\n  python3 -m warpline.capture --with torch --steps 3 --no-shapes -m -- package.train --lr 1\n"
    )


def test_the_container_command_survives_a_shell_and_is_understood_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    options = [
        "--with",
        "ncu",
        "--name",
        "a b",
        "--kernel",
        "gemm|x",
        "--launches",
        "3",
        "--tool-arg=--nvtx",
        "--stop",
        "--skip",
        "0",
    ]
    assert run(["run", "--container", "image:1", *options, "--", "python", "it's a.py", "$HOME", "", "日"]) == 0
    script = "docker() { printf '%s\\0' \"$@\"; }\n" + capsys.readouterr().out
    said = subprocess.run(["bash", "-euc", script], capture_output=True, text=True, check=True).stdout.split("\0")[:-1]
    inner = _parser().parse_args(said[said.index("warpline.capture") + 1 :])
    assert inner.program == ["--", "python", "it's a.py", "$HOME", "", "日"]
    assert (inner.tool, inner.name, inner.kernel, inner.launches, inner.tool_arg) == (
        "ncu",
        "a b",
        "gemm|x",
        3,
        ["--nvtx"],
    )
    assert (inner.stop, inner.skip, inner.module) == (True, 0, False)


def test_a_container_that_leaves_nothing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    docker = tmp_path / "docker"
    docker.write_text("#!/bin/sh\nexit 125\n")
    docker.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert run(["run", "--container", "image:1", "--exec", "train.py"]) == 125
    assert "warpline: no-run: the container wrote no run here" in capsys.readouterr().err


@pytest.fixture
def empty_run(tmp_path: Path) -> Run:
    trace = tmp_path / "trace.json.gz"
    trace.write_bytes(b"")
    manifest = {"schema": "warpline.run/1", "files": [trace.name]}
    return Run(tmp_path, manifest, Ending(7, None, 1.0, interrupted=False), 7, trace, None)


def test_a_trace_that_cannot_be_diagnosed_keeps_the_programs_exit_code_and_is_named(
    empty_run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(WarplineError) as caught:
        put_run(empty_run, RunAnswer(diagnose=True, explain=False, as_json=False))
    assert (caught.value.exit_code, caught.value.code) == (7, "empty-file")
    assert f"the run is in {as_typed(empty_run.folder)}" in capsys.readouterr().err


def test_json_of_such_a_run_is_one_document_that_says_why(empty_run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert put_run(empty_run, RunAnswer(diagnose=True, explain=False, as_json=True)) == 7
    printed = capsys.readouterr()
    assert json.loads(printed.out)["nothing"].startswith("empty-file")
    assert "warpline: empty-file: " in printed.err


def test_the_container_runs_when_asked_to_and_its_run_is_diagnosed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A docker that leaves what a container would, and fails as the program in it did."""
    docker = tmp_path / "docker"
    trace = DATA / "kineto" / "layer_eager.json.gz"
    docker.write_text(
        f"#!/bin/sh\nmkdir -p .warpline/runs/inside\ncp {trace} .warpline/runs/inside/trace.json.gz\n"
        'echo \'{"schema": "warpline.run/1", "files": ["trace.json.gz"]}\' > .warpline/runs/inside/manifest.json\nexit 6\n'
    )
    docker.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert run(["run", "--container", "image:1", "--exec", "train.py"]) == 6
    assert "NVIDIA H200" in capsys.readouterr().out


def test_an_option_after_the_script_is_said_to_be_the_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("")
    note = "warpline: --steps goes to the program; options of warpline run stand before it"
    assert run(["run", "--explain", "train.py", "--steps", "3"]) == 0
    assert note in capsys.readouterr().err
    assert run(["run", "--explain", "--steps", "3", "train.py", "--lr", "3"]) == 0
    assert note not in capsys.readouterr().err
