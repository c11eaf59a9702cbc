"""`warpline budget`: its options, its agreement with `whatif`, and the live calculator through a pseudo-terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from kineto_files import annotation, call, kernel, op, write
from paths import ROOT

from warpline.analyses.budget import recorded_budget
from warpline.cli.main import run
from warpline.trace.open import open_trace
from warpline.ui.budget_calculator import FACTORS, keys_in, panel

DEMO = str(ROOT / "src" / "warpline" / "data" / "demo.json.xz")
LOADER = str(ROOT / "faults" / "recordings" / "ward" / "molecules_read_by_two_workers.plain.json.gz")
GRAPHS = str(ROOT / "tests" / "data" / "kineto" / "serving_graph.json.xz")
NUMBERS = ["--ops", "1000", "--cpu-us", "10", "--gpu-us", "4"]


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, float]:
    assert run([*arguments, "--json"]) == 0
    found: dict[str, float] = json.loads(capsys.readouterr().out)
    return found


def test_the_fusion_factor_divides_the_dispatch_and_not_the_work(capsys: pytest.CaptureFixture[str]) -> None:
    for fusion, expected_ns in (("1", 10e6), ("2", 5e6), ("4", 4e6), ("100", 4e6)):
        found = answer(capsys, "budget", *NUMBERS, "--fusion", fusion)
        assert found["fused_step_ns"] == pytest.approx(expected_ns)
        assert found["step_ns"] == pytest.approx(10e6)


def test_80_launches_of_15_microseconds_are_1200_microseconds(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "budget", "--ops", "80", "--cpu-us", "15", "--gpu-us", "15")
    assert found["dispatch_ns"] == pytest.approx(1.2e6)
    assert answer(capsys, "budget", "--ops", "200", "--cpu-us", "15", "--gpu-us", "1")["step_ns"] == pytest.approx(3e6)


def test_a_graph_gains_nothing_where_whatif_finds_nothing_to_capture(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "budget", GRAPHS)
    assert found["graph_step_ns"] == found["step_ns"]
    assert run(["whatif", GRAPHS, "--fix", "cuda_graph"]) == 1
    assert "nothing-to-fix" in capsys.readouterr().err


def test_the_graph_of_a_trace_gains_what_whatif_predicts(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "budget", DEMO)
    assert run(["whatif", DEMO, "--fix", "cuda_graph", "--json"]) == 0
    predicted = json.loads(capsys.readouterr().out)
    prediction = predicted["predictions"][0] if "predictions" in predicted else predicted
    assert found["graph_step_ns"] == pytest.approx(prediction["new_step_ns"]["expected"], rel=1e-6)
    assert found["step_ns"] / found["graph_step_ns"] == pytest.approx(prediction["gain"]["expected"], rel=1e-3)


def test_the_profiler_s_cost_is_taken_out(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "budget", DEMO)
    assert found["profiler_ns"] > 0
    assert found["dispatch_ns"] <= found["step_ns"] * (1 + 1e-9)


def test_loading_is_no_dispatch(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "budget", LOADER)
    assert found["bound"] == "input"
    assert found["loading_ns"] > found["dispatch_ns"] > found["work_ns"]
    assert found["dispatch_ns"] + found["loading_ns"] <= found["step_ns"] * 1.01
    assert answer(capsys, "budget", LOADER, "--cpu-us", "28")["bound"] == "cpu"


def test_loading_code_is_no_dispatch(tmp_path: Path) -> None:
    """A step of 1 ms: 10 µs of launches, and 900 µs in which the driver loads a module."""
    events = [
        annotation("ProfilerStep#0", 0, 1_000),
        op("aten::add_", 10, 950),
        call("cuModuleLoadData", 20, 900, 1),
        call("cudaLaunchKernel", 930, 10, 2),
        kernel("k", 950, 20, 2),
    ]
    budget = recorded_budget(open_trace(write(tmp_path, events), cache=False)).budget
    assert budget.ops == 1
    assert budget.dispatch_ns <= 100_000


@pytest.mark.parametrize("wrong", [["--fusion", "0.5"], ["--live"], ["--live", "--json"], ["--fusion", "x"]])
def test_wrong_options_are_refused(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["budget", *NUMBERS, *wrong]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_keys_turn_the_chosen_dial_within_its_limits() -> None:
    start = panel(100, 10, 4, 4)
    assert start.pressed("right").dials[0].value == 110
    assert start.pressed("up").chosen == 3
    assert start.pressed("down").pressed("double").dials[1].value == 20
    assert start.pressed("right").pressed("reset") == start
    lowest = start
    for _ in range(200):
        lowest = lowest.pressed("left")
    assert lowest.dials[0].value == 1
    assert lowest.pressed("right").dials[0].value == 2, "a whole dial moves by one at least"
    fusion = start.pressed("up")
    for key in FACTORS:
        assert fusion.pressed(key).dials[3].value >= 1


def test_what_a_terminal_sends_is_read_key_by_key() -> None:
    assert list(keys_in(b"\x1b[A\x1b[Bq")) == ["up", "down", "quit"]
    assert list(keys_in(b"\x1bOCxyz\x1b[99;")) == ["right"]


class Terminal:
    """The live calculator in a pseudo-terminal."""

    def __init__(self, *arguments: str) -> None:
        self.master, self.slave = pty.openpty()
        self.before = termios.tcgetattr(self.slave)
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "PYTHONPATH": str(ROOT / "src")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "warpline", "budget", *arguments, "--live"],
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            env=environment,
            start_new_session=True,
        )
        self.shown = ""

    def until(self, text: str, seconds: float = 60) -> None:
        """Read until the text is shown."""
        end = time.monotonic() + seconds
        while text not in self.shown:
            assert time.monotonic() < end, self.shown
            if select.select([self.master], [], [], 0.2)[0]:
                self.shown += os.read(self.master, 4096).decode("utf-8", "replace")

    def press(self, keys: bytes) -> None:
        """Send keys."""
        self.shown = ""
        os.write(self.master, keys)

    def ended(self) -> int:
        """Its exit code; the terminal is as it was."""
        code = self.process.wait(30)
        assert termios.tcgetattr(self.slave) == self.before
        os.close(self.master)
        os.close(self.slave)
        return code


@pytest.mark.parametrize("ending", [b"q", b"\x03"])
def test_the_live_calculator_answers_to_arrows_and_ends_cleanly(ending: bytes) -> None:
    terminal = Terminal(*NUMBERS)
    terminal.until("Bound by dispatch on the CPU: a step takes 10.0 ms")
    terminal.press(b"\x1b[C")
    terminal.until("a step takes 11.0 ms")
    terminal.press(b"\x1b[B\x1b[6~")
    terminal.until("a step takes 5.50 ms")
    terminal.press(ending)
    terminal.until("warpline budget --ops 1100 --cpu-us 5 --gpu-us 4 --fusion 4")
    assert "Traceback" not in terminal.shown
    assert terminal.ended() == 0


def test_a_trace_can_be_the_start(tmp_path: Path) -> None:
    terminal = Terminal(DEMO)
    terminal.until("q quit")
    terminal.until("as one CUDA graph")
    terminal.press(b"q")
    assert terminal.ended() == 0
