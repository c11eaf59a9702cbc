"""The cases themselves, where there is no GPU and perhaps no torch."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from faults.calm_host import Pulse
from faults.captures import absolute_paths, profiled_step_ns
from faults.jobs import jobs
from faults.programs import CASES, CAUSES, SUITES, Case
from faults.programs.case import PLANTED
from faults.record import main
from faults.rounds import Round, Variant, least_of, measure
from faults.stopwatch import FirstSteps, Stopwatch, summary
from warpline.fixes.registry import all_fixes

EVERY = [case for cases in SUITES.values() for case in cases]


class NoDevice:
    """As much of torch as a stopwatch asks for."""

    def __init__(self) -> None:
        self.cuda = self
        self.backends = MagicMock()
        self.waits = 0

    def manual_seed(self, seed: int) -> None:
        """Nothing here is random."""

    def synchronize(self) -> None:
        self.waits += 1


@pytest.mark.parametrize("suite", SUITES)
def test_a_case_says_what_is_true_of_it(suite: str) -> None:
    for case in SUITES[suite]:
        check(case)


def check(case: Case) -> None:
    assert case.cause in CAUSES
    assert (case.fix is None) == (case.cause == "healthy")
    assert {case.fix, case.innocent, *case.also} - {None} <= set(all_fixes())
    assert case.innocent or not case.trap
    assert case.fix or case.innocent, "a healthy step names what tempts"
    first, *rest = case.story.split("\n\n")
    assert first.rstrip().endswith(".")
    assert rest, "the story says what is planted, and then why the fix is right"


def test_names_are_unique() -> None:
    assert len({case.name for case in EVERY}) == len(EVERY)


def test_planted_lines_are_where_the_marks_are() -> None:
    source = Path(__file__).parents[2]
    for case in EVERY:
        for line in case.planted_lines():
            lines = (source / line.file).read_text(encoding="utf-8").splitlines()
            assert lines[line.line - 1].endswith(PLANTED)
            assert lines[line.function_line - 1].lstrip().startswith(f"def {line.function}(")


def test_listing_the_cases_loads_neither_torch_nor_polars() -> None:
    program = (
        "import sys\n"
        "sys.modules['torch'] = sys.modules['polars'] = sys.modules['numpy'] = None\n"
        "import faults.record, faults.page\n"
        "print(len(faults.programs.CASES))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(result.stdout) == len(CASES)


def test_a_trap_is_timed_without_its_innocent_too() -> None:
    (trap,) = [case for case in CASES if case.name == "item_in_a_dispatch_bound_loop"]
    assert [job.variant for job in jobs(trap, time_only=True)] == ["faulty", "fixed", "remove_sync"]


def test_a_case_is_timed_before_the_profiler_is_used() -> None:
    for case in EVERY:
        works = [job.work for job in jobs(case)]
        assert works == sorted(works, reverse=True)  # time, then capture
        assert works.count("capture") == 2 + case.stacks


def test_only_a_first_call_needs_a_process_for_each_measurement() -> None:
    (first,) = [case for case in CASES if case.own_process]
    assert {job.variant for job in jobs(first) if job.needs_own_process} == {"faulty", "plain"}
    assert not any(job.needs_own_process for case in SUITES["held_out"] for job in jobs(case))


def test_the_stopwatch_waits_once_a_repeat_and_not_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    torch, calls = NoDevice(), []
    case = Case("first", "cold_start", "warm_up", lambda torch, fix: lambda: calls.append(torch.waits), steps=4)
    monkeypatch.setitem(sys.modules, "torch", torch)
    stopwatch = FirstSteps(torch, jobs(case)[0])
    assert stopwatch.sample() > 0
    assert calls == [1] * 4 + [3] * 4  # once for the process, once for the clock


def test_the_first_calls_of_a_process_are_not_paid_for_in_advance(monkeypatch: pytest.MonkeyPatch) -> None:
    torch, calls = NoDevice(), []
    monkeypatch.setitem(sys.modules, "torch", torch)
    case = Case("first", "cold_start", "warm_up", lambda torch, fix: lambda: calls.append(1), own_process=True)
    FirstSteps(torch, jobs(case)[0])
    assert not calls


def test_the_samples_show_how_far_they_lie_apart() -> None:
    result = summary([30.0, 10.0, 20.0])
    assert (result.min_ns, result.median_ns, result.max_ns, result.repeats) == (10, 20, 30, 3)


def test_the_stopwatch_warms_up_first() -> None:
    torch, calls = NoDevice(), []
    stopwatch = Stopwatch(torch, lambda: calls.append(1))
    before = len(calls)
    assert before > stopwatch.steps
    assert stopwatch.sample() > 0
    assert len(calls) - before > 2 * stopwatch.steps


def test_a_moment_is_calm_if_the_host_is_about_as_fast_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    pulse, pulses = Pulse(), iter([140, 134, 90, 140])
    pulse.least_ns = 100
    monkeypatch.setattr(pulse, "take", lambda: next(pulses))
    assert pulse.wait_for_calm(limit_s=1.0)  # the second one
    assert pulse.wait_for_calm(limit_s=1.0)
    assert pulse.least_ns == 90
    assert not pulse.wait_for_calm(limit_s=0.0)  # it does not wait for ever


def test_a_round_is_as_disturbed_as_its_slowest_time_its_gpu_or_its_captures() -> None:
    plain, stacks = jobs(Case("sleeper", "dispatch", "cuda_graph", MagicMock()))[-2:]
    calm = Round(times=[100.0, 103.0], busy=[90.0], captured={plain: 220.0, stacks: 400.0})
    slow_clocks = Round(times=[101.0], busy=[106.0], captured={plain: 200.0})
    slow_capture = Round(times=[101.0], busy=[90.0], captured={plain: 230.0})
    least = least_of([calm, slow_clocks, slow_capture, Round()])
    assert (least.times, least.captured) == ([100.0], {plain: 200.0, stacks: 400.0})
    assert calm.disturbance(least) == pytest.approx(1.0)
    assert slow_clocks.disturbance(least) == pytest.approx(2.0)
    assert slow_capture.disturbance(least) == pytest.approx(1.5)
    assert Round(busy=[90.0]).disturbance(least) == float("inf")


def test_a_variant_is_measured_until_a_round_was_undisturbed(tmp_path: Path) -> None:
    variant = Variant([], tmp_path, Pulse())
    variant.rounds = [Round(times=[130.0, 131.0])]
    assert not variant.settled()  # one round shows nothing
    variant.rounds.append(Round(times=[100.0, 128.0]))
    assert not variant.settled()
    assert variant.calm() == 0
    variant.rounds.append(Round(times=[102.0, 101.0]))
    assert variant.settled()
    assert variant.calm() == 1


def test_a_case_is_measured_by_turns_and_a_failure_costs_only_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def build(torch: object, fix: str | None) -> object:
        if fix == "batch":
            raise RuntimeError("no such fix")
        return lambda: time.sleep(0.001 if fix else 0.003)

    monkeypatch.setitem(sys.modules, "torch", MagicMock())
    case = Case("sleeper", "dispatch", "cuda_graph", build, also=("batch",))  # type: ignore[arg-type]
    faulty, fixed, other = jobs(case, time_only=True)
    results = measure([faulty, fixed, other], tmp_path, Pulse())
    assert set(results) == {faulty, fixed}
    assert results[faulty]["step_ns"] > 2 * results[fixed]["step_ns"] > 0
    assert results[fixed]["min_ns"] <= results[fixed]["step_ns"] <= results[fixed]["max_ns"]
    assert "sleeper time batch: RuntimeError: no such fix" in capfd.readouterr().err


def test_a_profiled_step_ends_with_the_last_work_of_the_gpu() -> None:
    text = """{"traceEvents": [
      {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#2", "ts": 10.0, "dur": 5.0},
      {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "ts": 15.0, "dur": 5.0},
      {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 28.0, "dur": 2.5},
      {"ph": "X", "cat": "gpu_memset", "name": "Memset", "ts": 27.0, "dur": 2.0}]}"""
    assert profiled_step_ns(text) == (10_250, 1_750)
    with pytest.raises(ValueError, match="ProfilerStep"):
        profiled_step_ns('{"traceEvents": []}')


def test_a_path_of_the_machine_is_seen() -> None:
    assert absolute_paths('{"name": "/home/someone/train.py(3): step"}') == ["/home/someone/train.py(3):"]
    assert absolute_paths('{"name": "faults/programs/sync.py(3): step", "x": "a / b"}') == []


@pytest.mark.parametrize("suite", SUITES)
def test_a_case_of_another_suite_is_refused(suite: str, capsys: pytest.CaptureFixture[str]) -> None:
    other = min(set(SUITES) - {suite})
    with pytest.raises(SystemExit) as stop:
        main(["-o", "nowhere", "--suite", suite, "--only", SUITES[other][0].name])
    assert stop.value.code == 2
    assert SUITES[other][0].name in capsys.readouterr().err


@pytest.mark.gpu
@pytest.mark.parametrize("suite", SUITES)
def test_every_step_runs(suite: str) -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    for case in SUITES[suite]:
        for step in (case.faulty(), case.fixed()):
            step()
            step()
    torch.cuda.synchronize()
