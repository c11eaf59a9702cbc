"""Programs that fail, print or do nothing when they are timed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import warpline
from warpline.bench.__main__ import main as plain
from warpline.bench.stopwatch import CpuStopwatch
from warpline.cli.main import run
from warpline.errors import WarplineError

PROGRAM = """import sys

def fine():
    return sum(range(100))

def fails():
    raise ValueError("my\\nmistake")

def leaves():
    sys.exit(3)

def by_hand():
    raise KeyboardInterrupt

def lazy():
    yield 1

async def waits():
    return 1

def named(*, scale):
    return scale

def speaks():
    print("printed")

def pair(a, b):
    return a + b

def pair_inputs():
    raise RuntimeError("no inputs today")

def one(a):
    return a

def one_inputs():
    print("made")

def each(a):
    return a

def each_inputs():
    yield (1,)
    yield (2,)
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("timed_and_failing.py").write_text(PROGRAM)
    return "timed_and_failing.py"


@pytest.mark.parametrize("line", [lambda arguments: run(["bench", *arguments]), plain], ids=["full", "plain"])
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["{}:fails"], 1, "program-failed: fails failed in line 7, ValueError: my mistake; run it without bench"),
        (["{}:fine", "--against", "{}:fails"], 1, "program-failed: fails failed in line 7, ValueError: my mistake"),
        (["{}:leaves"], 1, "program-failed: leaves failed in line 10, SystemExit: 3"),
        (["{}:by_hand"], 130, "interrupted: stopped by Ctrl-C"),
        (["{}:lazy"], 2, "nothing-runs: calling {}:lazy only creates a generator"),
        (["{}:waits"], 2, "nothing-runs: calling {}:waits only creates a coroutine"),
        (["{}:named"], 2, "by-name: it needs keyword arguments: scale"),
        (["{}:pair"], 1, "program-failed: pair_inputs of pair failed in line 31, RuntimeError: no inputs today"),
        (["{}:one"], 2, "no-inputs: one_inputs() returned nothing"),
        (["{}:fine", "--flops", "nan", "--dtype", "fp32"], 2, "bad-work"),
        (["{}:fine", "--bytes", "inf"], 2, "bad-work"),
    ],
)
def test_what_is_wrong_with_a_program_is_one_line(
    line: object, arguments: list[str], code: int, said: str, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert line([word.format(file) for word in arguments]) == code  # type: ignore[operator]
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"warpline: {said.format(file)}" in printed.err.splitlines()[-1]
    assert "Traceback" not in printed.err


@pytest.mark.parametrize("text", ["raise SystemExit(5)", "def f(: pass", "import no_such_module_anywhere"])
def test_a_file_that_cannot_be_loaded_is_one_line(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("timed_and_broken.py").write_text(text)
    assert run(["bench", "timed_and_broken.py:f"]) == 1
    assert capsys.readouterr().err.startswith("warpline: program-failed: loading timed_and_broken.py failed")


def test_what_a_program_prints_stays_out_of_the_answer(file: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", f"{file}:speaks", "--seconds", "0.01", "--json"]) == 0
    printed = capfd.readouterr()
    assert json.loads(printed.out)["schema"] == "warpline.bench/1"
    assert "printed\n" in printed.err


def test_inputs_may_be_given_one_by_one(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", f"{file}:each", "--seconds", "0.01", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["results"][0]["name"] == f"{file}:each"


def test_from_python_an_error_is_the_functions_own() -> None:
    def fails() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        warpline.bench(fails)


def test_a_clock_that_goes_backwards_is_not_believed() -> None:
    readings = iter(range(1_000, 0, -1))
    with pytest.raises(WarplineError, match="bad-clock"):
        CpuStopwatch(lambda: next(readings)).time([lambda: None])


def test_a_coarse_clock_has_the_resolution_of_its_tick() -> None:
    readings = iter(range(10_000))
    assert CpuStopwatch(lambda: next(readings) // 400 * 100).resolution_ns() == 100
