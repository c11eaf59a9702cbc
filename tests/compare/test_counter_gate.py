"""A report of Nsight Compute held to an older one."""

from __future__ import annotations

from pathlib import Path

import pytest
from ncu_files import raw_page, raw_row

from warpline.cli.main import run
from warpline.compare.budgets import Budget
from warpline.compare.counter_gate import check_report
from warpline.errors import WarplineError
from warpline.reports.compare import gate_report
from warpline.reports.gate_files import comment, junit
from warpline.reports.markdown import render
from warpline.sources.ncu.model import KernelReport, NcuReport, Reading

DRAM, LOCAL, CLOCK = "dram__bytes_read.sum", "smsp__inst_executed_op_local_ld.sum", "sm__cycles_elapsed.avg.per_second"
SPILLS = {LOCAL: 0.0, "smsp__inst_executed_op_local_st.sum": 0.0}


def launch(number: int, name: str, duration_ns: float, device: str = "GPU A", **metrics: float) -> KernelReport:
    values = {"gpu__time_duration.sum": duration_ns, "dram__bytes_write.sum": 0.0, CLOCK: 1.5e9, **SPILLS, **metrics}
    readings = {key: Reading(value, "") for key, value in values.items()}
    return KernelReport(name, name, number, device, "sm_90", (1, 1, 1), (1, 1, 1), duration_ns, readings)


def report(*kernels: KernelReport) -> NcuReport:
    return NcuReport(Path("new.ncu-rep"), "ncu-rep", "", kernels)


GOOD = report(launch(0, "gemm", 1000.0, **{DRAM: 500.0}), launch(1, "norm", 200.0, **{DRAM: 300.0}))


def missed(new: NcuReport) -> list[str]:
    return [check.budget.number for check in check_report(new, GOOD).checks if not check.passed]


def test_the_same_report_passes() -> None:
    found = check_report(GOOD, GOOD)
    assert found.outcome == "passed"
    assert [check.budget.number for check in found.checks] == [
        "gemm (0): µs",
        "gemm (0): bytes of DRAM traffic",
        "norm (1): µs",
        "norm (1): bytes of DRAM traffic",
    ]


def test_a_longer_kernel_is_a_regression_beyond_five_percent() -> None:
    norm = GOOD.kernels[1]
    assert missed(report(launch(0, "gemm", 1049.0, **{DRAM: 524.0}), norm)) == []
    assert missed(report(launch(0, "gemm", 1051.0, **{DRAM: 500.0}), norm)) == ["gemm (0): µs"]
    assert check_report(report(launch(0, "gemm", 1051.0, **{DRAM: 500.0}), norm), GOOD).outcome == "regression"


def test_more_work_in_the_same_time_is_a_regression_and_in_less_time_it_is_not() -> None:
    norm = GOOD.kernels[1]
    more, spills = {DRAM: 600.0}, {DRAM: 500.0, LOCAL: 7.0}
    assert missed(report(launch(0, "gemm", 1000.0, **more), norm)) == ["gemm (0): bytes of DRAM traffic"]
    assert missed(report(launch(0, "gemm", 1000.0, **spills), norm)) == ["gemm (0): local loads and stores"]
    assert missed(report(launch(0, "gemm", 900.0, **more), norm)) == []


def test_times_at_another_clock_are_not_checked_and_that_is_said() -> None:
    slow = report(launch(0, "gemm", 1500.0, **{DRAM: 500.0, CLOCK: 1e9}), GOOD.kernels[1])
    found = check_report(slow, GOOD)
    assert found.outcome == "passed"
    assert found.notes == ("Times not checked, because the SM clock differs by more than 5 %: gemm.",)


def test_a_launch_that_is_missing_is_refused_and_a_new_one_named() -> None:
    with pytest.raises(WarplineError, match=r"new\.ncu-rep lacks 1 launch of the baseline: norm"):
        check_report(report(GOOD.kernels[0]), GOOD)
    new = report(*GOOD.kernels, launch(2, "softmax", 10.0))
    assert check_report(new, GOOD).notes == ("Not in the baseline, so not checked: softmax.",)


def test_another_device_is_refused_unless_asked_for() -> None:
    other = report(*(launch(at, name, 1.0, device="GPU B") for at, name in enumerate(("gemm", "norm"))))
    with pytest.raises(WarplineError, match="the baseline is of GPU A, and the report of GPU B"):
        check_report(other, GOOD)
    assert check_report(other, GOOD, anyway=True).outcome == "passed"


def test_budgets_limit_counters_beside_the_baseline() -> None:
    budget = Budget.parse(f"ncu:gemm:{DRAM}<=400")
    assert check_report(GOOD, None, [budget]).outcome == "budget_exceeded"
    with pytest.raises(WarplineError, match="step_ms is a number of a recording"):
        check_report(GOOD, None, [Budget.parse("step_ms<=1")])
    with pytest.raises(WarplineError, match="--baseline or --budget"):
        check_report(GOOD, None)


def test_every_renderer_shows_what_is_worse() -> None:
    slow = report(launch(0, "gemm", 2000.0, **{DRAM: 500.0}), GOOD.kernels[1])
    found = check_report(slow, GOOD)
    for text in (render(gate_report(found)), comment(found, "gemm"), junit(found, "gemm")):
        assert "gemm (0): µs" in text
    assert found.to_dict()["budgets"][0] == {
        "number": "gemm (0): µs", "sign": "<=", "limit": 1.05, "value": 2.0, "low": 2.0, "high": 2.0, "passed": False,
        "baseline": 1.0,
    }  # fmt: skip


def test_two_pages_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    old.write_text(raw_page(raw_row(0, "gemm", "900.5", "100.5")))
    new.write_text(raw_page(raw_row(0, "gemm", "1,100.5", "100.5")))
    assert run(["gate", str(old), "--baseline", str(old)]) == 0
    assert run(["gate", str(new), "--baseline", str(old)]) == 3
    assert "900.5" in capsys.readouterr().out
