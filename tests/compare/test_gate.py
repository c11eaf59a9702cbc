"""Baselines and the gate: what is written is read, budgets, exit codes, and damaged baselines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kineto_files import Event, annotation, call, launched
from paths import DEMO
from step_traces import steps, trace

from warpline.cli.main import run
from warpline.compare.baseline import path_of, read_baseline, write_baseline
from warpline.compare.budgets import Budget
from warpline.compare.gate import GateLimits, judge
from warpline.compare.measurement import measure
from warpline.errors import WarplineError
from warpline.trace.open import open_trace

GOOD, SLOW = [("gemm", 100.0), ("silu", 40.0)], [("gemm", 160.0), ("silu", 40.0)]


@pytest.fixture
def paths(tmp_path: Path) -> tuple[str, str, str]:
    good = trace(tmp_path, "good", steps(12, GOOD))
    slow = trace(tmp_path, "slow", steps(12, SLOW))
    return str(good), str(slow), str(tmp_path / "kept")


def test_a_baseline_is_read_as_it_was_written(paths: tuple[str, str, str]) -> None:
    measured = measure(open_trace(paths[0]))
    path = path_of("train", Path(paths[2]))
    write_baseline(path, [measured])
    first = path.read_text()
    (read,) = read_baseline(path)
    assert (read.counts, read.step.idle_ns) == (pytest.approx(measured.counts), pytest.approx(measured.step.idle_ns))
    assert [one.name for one in read.step.operations] == ["gemm", "silu"]
    write_baseline(path, [read])
    assert path.read_text() == first


def test_the_gate_passes_the_same_and_stops_a_slower_program(
    paths: tuple[str, str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    good, slow, folder = paths
    assert run(["baseline", "save", "train", good, good, good, "--folder", folder]) == 0
    assert run(["gate", good, "--baseline", "train", "--folder", folder, "--metric", "busy"]) in {0, 4}
    assert run(["gate", slow, slow, slow, "--baseline", "train", "--folder", folder]) == 3
    assert "Regression." in capsys.readouterr().out
    assert run(["gate", slow, "--baseline", "train", "--folder", folder, "--json"]) == 3
    answer = json.loads(capsys.readouterr().out)
    assert answer["outcome"] == "regression"
    assert answer["comparison"]["parts"][0]["name"] == "gemm"


def test_the_wait_of_the_profiler_after_the_last_step_is_none_of_the_program(tmp_path: Path) -> None:
    """The CPU is done with its steps at 130 µs and the profiler waits; the device ends the last one at 310 µs."""
    events = [*launched("gemm", 0, 10, 200, 1), *launched("gemm", 100, 210, 100, 2)]
    marks = [annotation("ProfilerStep#0", 0, 50), annotation("ProfilerStep#1", 80, 50)]
    path = trace(tmp_path, "a", [*events, *marks, call("cudaDeviceSynchronize", 140, 170, 9)])
    measured = measure(open_trace(path))
    assert measured.counts == {"kernels": 1, "launches": 1, "syncs": 0, "copies": 0, "allocations": 0}
    assert measured.step.spans.ends[-1] == 310_000


def test_eleven_identical_recordings_pass(paths: tuple[str, str, str]) -> None:
    good, _, folder = paths
    assert run(["baseline", "save", "train", *[good] * 3, "--folder", folder]) == 0
    assert run(["gate", *[good] * 11, "--baseline", "train", "--folder", folder]) == 0
    assert run(["baseline", "save", "train", *[good] * 11, "--folder", folder, "-f"]) == 0
    assert run(["gate", good, "--baseline", "train", "--folder", folder]) == 0


def test_one_identical_recording_among_slower_ones_does_not_pass(paths: tuple[str, str, str]) -> None:
    good, slow, folder = paths
    assert run(["baseline", "save", "train", good, "--folder", folder]) == 0
    assert run(["gate", good, slow, slow, slow, "--baseline", "train", "--folder", folder]) != 0


def test_another_program_fails_even_if_it_is_faster(
    paths: tuple[str, str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, _, folder = paths
    other = str(trace(tmp_path, "other", steps(12, [("conv", 20.0), ("pool", 5.0)])))
    assert run(["baseline", "save", "train", good, "--folder", folder]) == 0
    words = ["gate", other, "--baseline", "train", "--folder", folder]
    assert run(words) == 1
    assert "they are not the same program" in " ".join(capsys.readouterr().out.split())
    assert run([*words, "--budget", "kernels<=1"]) == 3
    assert "Budget exceeded." in capsys.readouterr().out
    assert run([*words, "--anyway"]) == 0
    assert "compared anyway, although" in capsys.readouterr().out


def test_runs_of_different_programs_are_no_baseline(
    paths: tuple[str, str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = str(trace(tmp_path, "other", steps(12, [("conv", 20.0)])))
    assert run(["baseline", "save", "train", paths[0], other, "--folder", paths[2]]) == 1
    assert "different-runs" in capsys.readouterr().err


def test_the_gate_lists_every_part_with_v(paths: tuple[str, str, str], capsys: pytest.CaptureFixture[str]) -> None:
    good, slow, folder = paths
    assert run(["baseline", "save", "train", good, "--folder", folder]) == 0
    run(["gate", slow, "--baseline", "train", "--folder", folder])
    assert "silu" not in capsys.readouterr().out
    run(["gate", slow, "--baseline", "train", "--folder", folder, "-v"])
    assert "silu" in capsys.readouterr().out


def test_an_exceeded_budget_is_not_called_a_regression(
    paths: tuple[str, str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["gate", paths[0], "--budget", "step_ms<=0.001"]) == 3
    out = capsys.readouterr().out
    assert "Budget exceeded." in out
    assert "Regression" not in out


def test_budgets_have_a_direction(paths: tuple[str, str, str], capsys: pytest.CaptureFixture[str]) -> None:
    kept = ["--budget", "step_ms<=0.151", "--budget", "kernels<=2", "--budget", "busy_ms>=0.1"]
    assert run(["gate", paths[0], *kept]) == 0
    assert run(["gate", paths[0], *kept, "--budget", "launches<=1"]) == 3
    assert "exceeded" in capsys.readouterr().out
    assert run(["gate", paths[0], "--budget", "busy_ms>=9"]) == 3
    assert "not reached" in capsys.readouterr().out


def test_several_budgets_may_follow_one_option(paths: tuple[str, str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["gate", paths[0], "--budget", "step_ms<=0.151", "kernels<=2", "busy_ms>=0.1"]) == 0
    assert capsys.readouterr().out.count("kept") == 3
    assert run(["gate", "--budget", "kernels<=2", "launches<=1", paths[0]]) == 3
    assert run(["gate", "--budget", "kernels<=2", "launches<=1"]) == 2
    assert "no-trace" in capsys.readouterr().err
    assert run(["gate", paths[0], "--budget", "kernels<=2", "nonsense<=1"]) == 2
    assert "bad-budget" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "step_ms", "step_ms=<3", "nonsense<=3", "step_ms<=x", "step_ms<=1e9999"])
def test_what_is_no_budget_is_refused(text: str) -> None:
    with pytest.raises(WarplineError, match="bad-budget"):
        Budget.parse(text)


def test_the_gate_needs_something_to_check(paths: tuple[str, str, str]) -> None:
    with pytest.raises(WarplineError, match="nothing-to-check"):
        judge([measure(open_trace(paths[0]))], GateLimits())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"schema": "warpline.baseline/1"}',
        '{"schema": "warpline.baseline/1", "setting": {}, "operations": [], "runs": []}',
        '{"schema": "warpline.baseline/1", "setting": {"source": "k", "devices": [], "driver": null, "recorded": []}, "operations": [], "runs": [{}]}',
        "[" * 100_000,
    ],
)
def test_a_damaged_baseline_is_one_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(WarplineError, match="not-a-baseline"):
        read_baseline(tmp_path / "bad.json")


def test_a_missing_baseline_and_a_bad_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(WarplineError, match="no-baseline"):
        read_baseline(tmp_path / "none.json")
    (tmp_path / "batch.json").write_text("{}")
    with pytest.raises(WarplineError, match="no-baseline") as caught:
        read_baseline(tmp_path / "bacth.json")
    assert caught.value.hint == "did you mean batch?"
    with pytest.raises(WarplineError, match="bad-name"):
        path_of("../x", tmp_path)


def test_less_gpu_work_in_a_longer_step_does_not_pass(tmp_path: Path) -> None:
    before = trace(tmp_path, "before", steps(6, [("gemm", 300.0), ("silu", 300.0)], gap=20))
    after = trace(tmp_path, "after", steps(6, [("gemm", 255.0), ("silu", 255.0)], gap=120))
    found = judge([measure(open_trace(after))], GateLimits([measure(open_trace(before))]))
    assert found.comparison is not None
    assert (found.comparison.verdict, found.comparison.judged_by) == ("faster", "work")
    assert found.outcome == "inconclusive"


def test_less_gpu_work_in_a_step_that_is_no_shorter_does_not_pass(tmp_path: Path) -> None:
    """The kernel is 15 % shorter and the step 0.2 %: whatever else ran is not in the recording."""
    before = trace(tmp_path, "before", steps(6, [("gemm", 300.0), ("silu", 300.0)], gap=20))
    after = trace(tmp_path, "after", steps(6, [("gemm", 255.0), ("silu", 255.0)], gap=64.5))
    found = judge([measure(open_trace(after))], GateLimits([measure(open_trace(before))]))
    assert found.comparison is not None
    assert (found.comparison.verdict, found.comparison.judged_by) == ("faster", "work")
    assert 0.98 < found.comparison.ratio.expected < 1
    assert found.outcome == "inconclusive"


def test_steps_further_apart_do_not_pass(tmp_path: Path) -> None:
    def apart(between: float) -> list[Event]:
        starts = [step * (200 + between) for step in range(8)]
        marks = [annotation(f"ProfilerStep#{step}", start, 200) for step, start in enumerate(starts)]
        return marks + [
            one for step, start in enumerate(starts) for one in launched("gemm", start + 1, start + 6, 180, step + 1)
        ]

    close, far = (open_trace(trace(tmp_path, name, apart(gap))) for name, gap in (("close", 0), ("far", 300)))
    write_baseline(tmp_path / "train.json", [measure(close)] * 6)
    limits = GateLimits(read_baseline(tmp_path / "train.json"), least_effect=0.1)
    assert judge([measure(close)] * 6, limits).outcome == "passed"
    found = judge([measure(far)] * 6, limits)
    assert found.outcome == "inconclusive"
    assert found.comparison is not None
    assert "0 ns pass between two steps of A and 300 µs between those of B" in found.comparison.reasons[-1]


def test_the_numbers_of_the_gate_are_those_of_the_diagnosis(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diagnose", str(DEMO), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    run(["gate", str(DEMO), "--budget", "kernels>=1", "--no-history", "--json"])
    numbers = json.loads(capsys.readouterr().out)["numbers"]
    device = told["account"][0]
    assert numbers["step_ms"] == pytest.approx(told["replay"]["bare_step_ns"] / 1e6, abs=1e-6)
    assert numbers["recorded_step_ms"] == pytest.approx(told["replay"]["measured_step_ns"] / 1e6, abs=1e-6)
    assert numbers["idle_pct"] == pytest.approx(100 * device["idle_ns"] / device["window_ns"], abs=1e-5)
    for cause, ns in device["idle"].items():
        assert numbers[f"idle_{cause.removesuffix('_ns')}_pct"] == pytest.approx(
            100 * ns / device["window_ns"], abs=1e-5
        )


def test_a_limit_within_the_range_of_a_number_is_inconclusive(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["gate", str(DEMO), "--no-history", "--budget", "kernels>=1", "--budget"]
    assert run([*words, "step_ms<=100"]) == 0
    capsys.readouterr()
    assert run([*words, "step_ms<=9"]) == 4
    shown = " ".join(capsys.readouterr().out.split())
    assert "Inconclusive" in shown and "recorded_step_ms limits the step as recorded" in shown
    assert run([*words, "step_ms<=1"]) == 3


@pytest.mark.parametrize("budget", ["step_ms<=100", "syncs<=100", "busy_ms<=100"])
def test_a_recording_without_steps_keeps_no_budget_per_step(
    budget: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = [*launched("gemm", 0, 5, 100, 1), *launched("silu", 110, 115, 30, 2)]
    path = str(trace(tmp_path, "a", events))
    assert run(["gate", path, "--budget", budget, "--no-history"]) == 1
    assert "no-steps" in capsys.readouterr().err
    assert run(["gate", path, "--budget", "idle_pct<=100", "--no-history"]) == 0


def test_what_diagnose_calls_unclear_keeps_no_budget(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    single = str(trace(tmp_path, "single", launched("gemm", 0, 5, 100, 1)))
    kernels = steps(6, GOOD)
    marked = [event for event in kernels if not str(event["name"]).startswith("ProfilerStep")]
    tiny = str(trace(tmp_path, "tiny", [*marked, annotation("ProfilerStep#0", 0, 20)]))
    for path, why in ((single, "a single GPU operation"), (tiny, "of the recording's GPU time")):
        assert run(["gate", path, "--budget", "idle_pct<=100", "--no-history"]) == 1
        said = capsys.readouterr().err
        assert "unclear-recording" in said and why in said
        assert run(["baseline", "save", "x", path, "--folder", str(tmp_path)]) == 1


def test_the_headline_and_the_sentence_agree_for_the_gpus_work(
    paths: tuple[str, str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    good, slow, folder = paths
    assert run(["baseline", "save", "train", good, good, good, "--folder", folder]) == 0
    capsys.readouterr()
    assert run(["gate", slow, slow, slow, "--baseline", "train", "--folder", folder, "--metric", "busy"]) == 3
    shown = capsys.readouterr().out
    assert "Regression." in shown and "The GPU's work is longer in B" in shown and "Inconclusive" not in shown
    assert run(["gate", good, good, "--baseline", "train", "--folder", folder, "--metric", "busy"]) == 0
    shown = capsys.readouterr().out
    assert "Passed." in shown and "Inconclusive" not in shown


def rare(slow: float) -> list[Event]:
    """Nineteen steps of 105 µs, and one whose kernel is `slow`."""
    events: list[Event] = []
    zero = 0.0
    for step in range(20):
        length = slow if step == 17 else 100.0
        events += [
            *launched("gemm", zero, zero + 5, length, step + 1),
            annotation(f"ProfilerStep#{step}", zero, length + 5),
        ]
        zero += length + 5
    return events


@pytest.mark.parametrize("metric", ["step", "busy"])
def test_a_few_slow_steps_that_the_baseline_lacks_are_told(
    metric: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    even, odd, folder = str(trace(tmp_path, "even", rare(100))), str(trace(tmp_path, "odd", rare(1000))), str(tmp_path)
    assert run(["baseline", "save", "train", *[even] * 6, "--folder", folder]) == 0
    words = ["--baseline", "train", "--folder", folder, "--metric", metric, "--no-history"]
    run(["gate", *[even] * 6, *words])
    assert "a few steps" not in capsys.readouterr().out
    run(["gate", *[odd] * 6, *words])
    shown = " ".join(capsys.readouterr().out.split())
    assert "more than 2 times its usual step and add +42.9 % to the mean, in A +0.0 %" in shown


def test_a_few_slow_steps_are_told_and_can_be_limited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """150 µs in the mean."""
    path = str(trace(tmp_path, "rare", rare(1000)))
    words = ["gate", path, "--no-history", "--budget"]
    assert run([*words, "recorded_step_ms<=0.12"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "the mean of all recorded steps is 0.150 ms" in shown
    assert run([*words, "mean_step_ms<=0.12"]) == 3
    assert run([*words, "mean_step_ms<=0.16"]) == 0
    capsys.readouterr()
    assert run([*words, "recorded_step_ms<=0.16"]) == 0
    assert "the mean of all" not in " ".join(capsys.readouterr().out.split())
