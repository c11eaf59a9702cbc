"""Which steps of a trace are replayed."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kineto_files import write
from paths import ROOT, SUITES
from small_programs import H200, Program

from warpline.findings.rank import judge
from warpline.replay import judged_steps
from warpline.replay.judged_steps import representative_steps
from warpline.trace.columns import Floats
from warpline.trace.open import open_trace


@pytest.mark.parametrize(("cold_us", "judged"), [(50_000, 5), (0, 2)])
def test_a_cold_step_is_judged_however_many_calls_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cold_us: float, judged: int
) -> None:
    program = Program()
    for number in range(5):
        with program.step():
            program.python(0 if number else cold_us)
            for _ in range(20):
                program.large_product(100)
            program.wait()
    monkeypatch.setattr(judged_steps, "ENOUGH_CALLS", 40)
    trace = open_trace(write(tmp_path, program.events, **H200), cache=False)
    assert len(judged_steps.steps_to_judge(trace).steps_in_view) == judged


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


def test_steps_are_taken_from_one_stretch_of_the_recording(tmp_path: Path) -> None:
    program = Program()
    for number in range(8):
        if number in {3, 7}:
            program.python(50_000)
        with program.step():
            program.large_product(1_000)
            program.wait()
    trace = open_trace(write(tmp_path, program.events, **H200), cache=False)
    judged = judged_steps.steps_to_judge(trace)
    assert judged.steps_in_view["start_ns"].to_list() == trace.steps["start_ns"][3:7].to_list()


@pytest.mark.parametrize("name", ["planted/token_decode", "planted/small_mlp_training", "planted/pageable_batch"])
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
