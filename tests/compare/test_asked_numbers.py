"""Numbers that are computed only for a budget: memory, the roofline, counters of Nsight Compute."""

from __future__ import annotations

from pathlib import Path

import pytest
from kineto_files import Event, launched, write
from paths import ROOT

from warpline.cli.main import run
from warpline.compare.asked_numbers import asked_numbers, counter
from warpline.compare.budgets import Budget
from warpline.errors import WarplineError
from warpline.sources.ncu.model import KernelReport, Reading
from warpline.trace.open import open_trace

METRIC = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
DEMO = str(ROOT / "src" / "warpline" / "data" / "demo.json.xz")


def kernel(name: str, **metrics: float) -> KernelReport:
    readings = {key: Reading(value, "%") for key, value in metrics.items()}
    return KernelReport(name, name, 0, "", "", None, None, None, readings)


def memory(at: float, allocated: int, device_type: int = 1) -> Event:
    args = {
        "Device Type": device_type,
        "Device Id": 0,
        "Bytes": 1,
        "Total Allocated": allocated,
        "Total Reserved": 4_000_000,
        "Addr": 1,
    }
    return {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": at, "args": args}


def test_peak_memory_is_the_gpus(tmp_path: Path) -> None:
    events = [*launched("gemm", 0, 5, 100, 1), memory(1, 2_000_000), memory(2, 1_000_000), memory(3, 9_000_000, 0)]
    trace = open_trace(write(tmp_path, events))
    budgets = [Budget.parse("peak_memory_mb<=1"), Budget.parse("peak_reserved_mb<=1"), Budget.parse("step_ms<=1")]
    found = asked_numbers(budgets, trace, ())
    assert {name: value.expected for name, value in found.items()} == {"peak_memory_mb": 2.0, "peak_reserved_mb": 4.0}


def test_what_was_not_recorded_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(write(tmp_path, [*launched("gemm", 0, 5, 100, 1), *launched("gemm", 110, 115, 100, 2)]))
    assert run(["gate", path, "--budget", "peak_memory_mb<=1"]) == 1
    assert "profile_memory=True" in capsys.readouterr().err
    assert run(["gate", path, "--budget", f"ncu:gemm:{METRIC}>=1"]) == 2
    assert "--ncu REPORT" in capsys.readouterr().err
    assert run(["gate", path, "--budget", "nonsense<=1"]) == 2
    assert "ncu:KERNEL:METRIC" in capsys.readouterr().err


def test_the_share_of_the_roof_is_a_share() -> None:
    (value,) = asked_numbers([Budget.parse("roof_pct>=1")], open_trace(DEMO), ()).values()
    assert 0 < value.expected < 100


def test_the_worst_launch_counts_in_each_direction() -> None:
    kernels = [kernel("at::gemm<1>", **{METRIC: 40.0}), kernel("at::gemm<2>", **{METRIC: 70.0}), kernel("silu")]
    assert counter(Budget.parse(f"ncu:at::gemm:{METRIC}>=60"), kernels) == 40.0
    assert counter(Budget.parse(f"ncu:gemm:{METRIC}<=60"), kernels) == 70.0
    with pytest.raises(WarplineError, match=r"no-kernel.*it has at::gemm<1>"):
        counter(Budget.parse(f"ncu:conv:{METRIC}<=60"), kernels)
    with pytest.raises(WarplineError, match=f"no-metric.*similar: {METRIC}"):
        counter(Budget.parse("ncu:gemm:sm__throughput.avg.pct_of_peak<=60"), kernels)
