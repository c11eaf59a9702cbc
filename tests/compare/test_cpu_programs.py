"""Programs without GPU work in a comparison, a baseline and a gate, with answers worked out on paper."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kineto_files import Event, annotation, op
from step_traces import trace

import warpline
from warpline.cli.main import run
from warpline.reports import terminal
from warpline.reports.compare import report

Ops = list[tuple[str, float, list[int]]]
"""Name, time in microseconds, and the sizes of the input."""
LAYER: Ops = [("aten::addmm", 400, [64, 256]), ("aten::relu", 100, [64, 256])]


def cpu_steps(number: int, ops: Ops, gap: float = 10) -> list[Event]:
    """So many steps, each with these ops after one another and a gap before each."""
    events: list[Event] = []
    zero = 0.0
    for step in range(number):
        begun = zero
        for name, length, sizes in ops:
            events.append(op(name, zero + gap, length + step % 3, **{"Input Dims": [sizes]}))
            zero += gap + length + step % 3
        events.append(annotation(f"ProfilerStep#{step}", begun, zero - begun))
    return events


def rows(count: int, length: float) -> Ops:
    return [("aten::mean", length, [256])] * count


def test_ops_in_a_loop_that_became_one(tmp_path: Path) -> None:
    """40 ops of 20 µs with their gaps of 10 µs become one of 30 µs on a larger input; the layer stays."""
    a = trace(tmp_path, "a", cpu_steps(6, [*rows(40, 20), *LAYER]))
    b = trace(tmp_path, "b", cpu_steps(6, [("aten::mean", 30, [40, 256]), *LAYER]))
    found = warpline.compare(a, b)
    assert (found.verdict, found.judged_by) == ("faster", "structure")
    assert sum(part.change_ns for part in found.parts) + found.unexplained_ns == found.change_ns
    means = next(part for part in found.parts if part.name == "aten::mean")
    assert (means.kind, means.a_count, means.b_count) == ("same", 40, 1)
    gaps = next(part for part in found.parts if part.name == "gap before aten::mean")
    assert (gaps.a_ns, gaps.b_ns) == (400_000, 10_000)
    shown = terminal.render(report(found), 120)
    assert "GPU" not in shown
    assert found.to_dict()["change"]["work_ratio"] is None


def test_the_same_program_twice_is_no_change(tmp_path: Path) -> None:
    a = trace(tmp_path, "a", cpu_steps(6, [*rows(40, 20), *LAYER]))
    b = trace(tmp_path, "b", cpu_steps(6, [*rows(40, 21), *LAYER]))
    assert warpline.compare(a, b).verdict == "inconclusive"
    assert warpline.compare(a, a).verdict == "same"


def test_a_slow_host_is_not_taken_for_a_change(tmp_path: Path) -> None:
    """Every op and gap takes 1.4 times as long: runs differ by so much."""
    a = trace(tmp_path, "a", cpu_steps(6, [*rows(40, 20), *LAYER]))
    slower = [(name, 1.4 * length, sizes) for name, length, sizes in [*rows(40, 20), *LAYER]]
    b = trace(tmp_path, "b", cpu_steps(6, slower, gap=14))
    assert warpline.compare(a, b).verdict == "inconclusive"


def test_a_gap_that_took_most_of_the_step_is_faster_by_its_time(tmp_path: Path) -> None:
    """A step of 10.5 ms, 10 of them before the layer, becomes one of 0.5 ms: 20 times."""
    a = trace(tmp_path, "a", cpu_steps(6, LAYER, gap=5000))
    b = trace(tmp_path, "b", cpu_steps(6, LAYER, gap=1))
    found = warpline.compare(a, b)
    assert (found.verdict, found.judged_by) == ("faster", "step")
    assert found.parts[0].name.startswith("gap before aten::")


def test_other_programs_and_other_steps_are_not_compared(tmp_path: Path) -> None:
    a = trace(tmp_path, "a", cpu_steps(6, LAYER))
    other = trace(tmp_path, "b", cpu_steps(6, [("aten::sort", 300, [1000])]))
    twice = trace(tmp_path, "c", cpu_steps(6, [*LAYER, *LAYER]))
    assert warpline.compare(a, other).reasons[0].startswith("A and B have hardly any ops in common")
    assert "runs the same ops 2.0 times as often" in warpline.compare(a, twice).reasons[0]


def test_a_baseline_and_its_gate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fast = trace(tmp_path, "a", cpu_steps(6, [("aten::mean", 30, [40, 256]), *LAYER]))
    slow = trace(tmp_path, "b", cpu_steps(6, [*rows(40, 20), *LAYER]))
    folder = ["--folder", str(tmp_path), "--no-history"]
    assert run(["baseline", "save", "loop", str(fast), "--folder", str(tmp_path)]) == 0
    assert run(["gate", str(fast), "--baseline", "loop", *folder]) == 0
    capsys.readouterr()
    assert run(["gate", str(slow), "--baseline", "loop", "--json", *folder]) == 3
    answer = json.loads(capsys.readouterr().out)
    assert (answer["outcome"], answer["comparison"]["judged_by"]) == ("regression", "structure")
    assert set(answer["numbers"]) == {"step_ms", "recorded_step_ms", "mean_step_ms"}


def test_budgets_limit_the_step_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = trace(tmp_path, "a", cpu_steps(6, LAYER))  # 520 µs, and up to 4 more by step
    assert run(["gate", str(path), "--budget", "step_ms<=1", "--no-history"]) == 0
    assert run(["gate", str(path), "--budget", "step_ms<=0.5", "--no-history"]) == 3
    assert run(["gate", str(path), "--budget", "idle_pct<=10", "--no-history"]) == 1
    assert "no-gpu-work: idle_pct is a number of the GPU" in capsys.readouterr().err
    assert run(["baseline", "save", "loop", str(path), "--folder", str(tmp_path)]) == 0
    words = ["gate", str(path), "--baseline", "loop", "--metric", "busy", "--folder", str(tmp_path), "--no-history"]
    assert run(words) == 1
    assert "no-gpu-work: the metric busy" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["whatif", "budget"])
def test_what_only_a_gpu_has_is_one_line_that_says_what_to_type(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = trace(tmp_path, "a", cpu_steps(6, LAYER))
    assert run([verb, str(path)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("warpline: no-gpu-work:")
    assert "warpline try measures fixes" in error


def test_files_of_one_name_are_named_with_their_folders(tmp_path: Path) -> None:
    one, two = (trace(tmp_path, name, cpu_steps(6, LAYER)) for name in ("one", "two"))
    found = warpline.compare(one, two).to_dict()
    assert [found[side]["files"] for side in "ab"] == [["one/trace.json"], ["two/trace.json"]]
    assert warpline.compare(one, one).to_dict()["b"]["files"] == ["trace.json"]


def test_a_baseline_without_its_name_or_its_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = trace(tmp_path, "a", cpu_steps(6, LAYER))
    before = path.read_bytes()
    for others in ([], [str(path), "-f"]):
        assert run(["baseline", "save", str(path), *others]) == 2
        assert "no-name: the baseline has no name; warpline baseline save NAME" in capsys.readouterr().err
    assert path.read_bytes() == before
    assert run(["baseline", "save", "loop"]) == 2
    assert "no recording is named; warpline baseline save loop TRACE" in capsys.readouterr().err


def test_a_ladder_of_cpu_programs_speaks_of_no_kernels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace(tmp_path, "1-rows", cpu_steps(6, [*rows(40, 20), *LAYER]))
    trace(tmp_path, "2-whole", cpu_steps(6, [("aten::mean", 30, [40, 256]), *LAYER]))
    assert run(["ladder", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("2 rungs on the CPU")
    assert "kernels" not in shown
