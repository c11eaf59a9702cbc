"""Which steps of a trace are replayed."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kineto_files import write
from paths import ROOT, SUITES
from small_programs import CONV_LAST, H200, Program

from warpline.findings.judge import judge
from warpline.replay import representative_steps as judged_steps
from warpline.replay.cold_steps import find_cold_steps
from warpline.replay.representative_steps import representative_steps
from warpline.trace.arrays import Floats
from warpline.trace.open import open_trace
from warpline.trace.trace import Trace


def program_of(pauses_us: list[float], op: str | None = None) -> Program:
    """Steps of 20 GEMMs of 100 µs; before each, as much Python, or as long an op."""
    program = Program()
    for pause in pauses_us:
        with program.step():
            if op and pause:
                program.op(op, (CONV_LAST, 20), cpu=pause)
            else:
                program.python(pause)
            for _ in range(20):
                program.large_product(100)
            program.wait()
    return program


def opened(program: Program, folder: Path) -> Trace:
    return open_trace(write(folder, program.events, **H200), cache=False)


def test_a_cold_first_step_is_set_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = opened(program_of([50_000, 0, 0, 0, 0], "aten::convolution"), tmp_path)
    chosen = judged_steps.steps_to_judge(trace)
    assert chosen.steps_in_view.index.tolist() == [1, 2, 3, 4]
    cold = chosen.cold
    assert cold is not None
    assert (cold.first, cold.count, cold.recorded) == (0, 1, 5)
    assert cold.once_ns == pytest.approx(50_000_000, rel=0.01)
    assert cold.ops[0][0] == "aten::convolution"
    monkeypatch.setattr(judged_steps, "ENOUGH_CALLS", 40)
    assert len(judged_steps.steps_to_judge(trace).steps_in_view) == 2


def test_the_verdict_of_a_recorded_cold_start_gains_the_mean_recorded_step_over_a_warm_one(tmp_path: Path) -> None:
    """One step of 52 ms and four of 2.01 ms take 12.0 ms on average, 5.98 warm steps."""
    judgement = program_of([50_000, 0, 0, 0, 0], "aten::convolution").judged(tmp_path)
    verdict, step_ns = judgement.verdict, judgement.evidence.step_ns
    assert (verdict.cause, verdict.fix) == ("cold_start", "warm_up")
    assert verdict.gain.expected == pytest.approx(5.98, rel=0.01)
    assert verdict.new_step_ns is not None
    assert step_ns == pytest.approx(verdict.new_step_ns.expected) == pytest.approx(2_010_000, rel=0.02)


@pytest.mark.parametrize(
    "pauses_us",
    [
        pytest.param([50_000, 0, 50_000, 0, 0], id="twice"),
        pytest.param([0, 0, 50_000, 0, 0], id="in the middle, and nothing is loaded"),
        pytest.param([0, 0, 0, 0, 0], id="none"),
        pytest.param([50_000, 0], id="one other step"),
    ],
)
def test_other_long_steps_are_not_set_aside(tmp_path: Path, pauses_us: list[float]) -> None:
    assert find_cold_steps(opened(program_of(pauses_us), tmp_path)) is None


def test_a_first_step_with_more_work_for_the_device_is_not_cold(tmp_path: Path) -> None:
    program = Program()
    for number in range(5):
        with program.step():
            program.large_product(50_000 if number == 0 else 1_000)
            program.wait()
    assert find_cold_steps(opened(program, tmp_path)) is None


def test_steps_that_compile_in_the_middle_are_cold(tmp_path: Path) -> None:
    program = Program()
    for number in range(5):
        with program.step():
            if number == 2:
                program.op("dynamo", (CONV_LAST, 20), cpu=50_000)
            program.large_product(1_000)
            program.wait()
    cold = find_cold_steps(opened(program, tmp_path))
    assert cold is not None
    assert (cold.first, cold.count) == (2, 1)


def steps_of(*lengths_us: float) -> Floats:
    """Steps of these lengths, in nanoseconds."""
    return np.array(lengths_us) * 1e3


def test_alike_steps_are_taken_from_the_middle_as_many_as_are_enough() -> None:
    steps = steps_of(*[100] * 20)
    assert representative_steps(steps, 4) == range(8, 12)
    assert representative_steps(steps, 100) == range(7, 13)
    assert representative_steps(steps, 0) == range(10, 11)


def test_a_step_of_unusual_length_does_not_stand_for_the_others() -> None:
    assert representative_steps(steps_of(100, 100, 100, 130, 100, 100, 100), 1) in (range(2, 3), range(4, 5))


def test_the_cold_start_of_a_long_run_is_past() -> None:
    chosen = representative_steps(steps_of(5_000, *[100] * 19), 6)
    assert len(chosen) == 6
    assert 0 not in chosen


def test_long_steps_that_come_again_are_judged_as_often_as_they_come() -> None:
    steps = steps_of(*[400, 100, 100, 100] * 8)
    chosen = representative_steps(steps, 6)
    assert steps[chosen].mean() == steps.mean()


def test_steps_are_taken_from_a_run_without_a_pause(tmp_path: Path) -> None:
    program = Program()
    for number in range(8):
        if number in {3, 7}:
            program.python(50_000)
        with program.step():
            program.large_product(1_000)
            program.wait()
    trace = open_trace(write(tmp_path, program.events, **H200), cache=False)
    judged = judged_steps.steps_to_judge(trace)
    assert judged.steps_in_view.start_ns.tolist() == trace.all_steps.start_ns[3:7].tolist()


@pytest.mark.parametrize("name", ["planted/token_decode", "planted/pageable_batch"])
def test_a_profile_repeated_ten_times_gives_the_answer_of_one(tmp_path: Path, name: str) -> None:
    make_trace: Any = runpy.run_path(str(ROOT / "benchmarks" / "make_trace.py"))["make_trace"]
    source, repeated = SUITES / f"{name}.json.gz", tmp_path / "repeated.json.gz"
    make_trace(source, repeated, 10, None, level=1)
    once, often = (judge(open_trace(path, cache=False)) for path in (source, repeated))
    assert (often.verdict.cause, often.verdict.fix) == (once.verdict.cause, once.verdict.fix)
    assert often.verdict.gain.expected == pytest.approx(once.verdict.gain.expected, rel=0.01)
    gains = [{finding.rule: finding.gain.expected for finding in one.findings} for one in (once, often)]
    assert gains[1] == pytest.approx(gains[0], rel=0.01)
    assert len(often.evidence.trace.api) <= len(once.evidence.trace.api)
