"""Ops that plan once are a cold start in the account, and ops that are always slow are not."""

from __future__ import annotations

from pathlib import Path

import pytest
from kineto_files import write
from small_programs import H200, MUL, Program

from warpline.analyses.idle.gaps import idle_gaps
from warpline.analyses.idle.host_time import HostTime
from warpline.replay.cold_steps import cold_spans
from warpline.trace.open import open_trace

SLOW, USUAL = 2000, 20
"""CPU time before the launch, in µs."""


def account(folder: Path, program: Program) -> dict[str, int]:
    """Idle time by cause, in µs."""
    trace = open_trace(write(folder, program.events, **H200), cache=False)
    (gaps,) = idle_gaps(trace, HostTime(trace, cold=cold_spans(trace)))
    return {cause: length // 1000 for cause, length in gaps.totals().items()}


def program_of(lengths: list[list[int]], size: list[int]) -> Program:
    """Steps of ops that take so long before their launch; `size` is the shape in each step."""
    program = Program()
    for step, cpu in zip(size, lengths, strict=True):
        with program.step():
            for one in cpu:
                program.op("aten::fft", (MUL, 10), cpu=one, shapes=[[step, 64]])
            program.wait()
    return program


def test_a_plan_for_every_new_shape_is_a_cold_start(tmp_path: Path) -> None:
    planned = account(tmp_path, program_of([[SLOW, USUAL, USUAL]] * 4, [1, 2, 3, 4]))
    assert planned["cold_start"] == pytest.approx(4 * SLOW, abs=SLOW)
    assert planned["dispatch"] < SLOW / 2


def test_an_op_that_is_slow_in_every_step_is_dispatch(tmp_path: Path) -> None:
    slow = account(tmp_path, program_of([[SLOW], [SLOW], [SLOW], [SLOW]], [1, 1, 1, 1]))
    assert slow["cold_start"] == 0
    assert slow["dispatch"] >= 3 * SLOW


def test_a_pause_after_usual_runs_is_no_plan(tmp_path: Path) -> None:
    paused = account(tmp_path, program_of([[USUAL], [USUAL], [SLOW], [USUAL]], [1, 1, 1, 1]))
    assert paused["cold_start"] == 0


def test_silence_in_a_cold_step_is_the_cold_start(tmp_path: Path) -> None:
    """The first of six steps has 20 ms of Python in which something is compiled; the others take 30 µs."""
    program = Program()
    for step in range(6):
        with program.step():
            program.op("aten::mul", (MUL, 10), cpu=USUAL, shapes=[[64, 64]])
            program.python(20_000 if step == 0 else 1)
            program.op("aten::mul", (MUL, 10), cpu=USUAL, shapes=[[64, 64]])
            program.wait()
    assert account(tmp_path, program)["cold_start"] == pytest.approx(20_000, rel=0.05)


def test_only_a_cold_step_waits_so_long_for_its_first_batch(tmp_path: Path) -> None:
    """Each of six steps of about 1 ms loads for 0.8 ms; the first one has 20 ms of it besides, as workers start."""
    program = Program()
    for step in range(6):
        with program.step():
            program.op("aten::mul", (MUL, 10), cpu=USUAL, shapes=[[64, 64]])
            if step == 0:
                program.op("DataLoader: start", cpu=20_000)
                program.op("aten::mul", (MUL, 10), cpu=USUAL, shapes=[[64, 64]])
            program.op("DataLoader: next", cpu=800)
            program.op("aten::mul", (MUL, 10), cpu=USUAL, shapes=[[64, 64]])
            program.wait()
    idle = account(tmp_path, program)
    assert idle["cold_start"] == pytest.approx(20_000, rel=0.05)
    assert idle["input"] == pytest.approx(6 * 800, rel=0.05)
