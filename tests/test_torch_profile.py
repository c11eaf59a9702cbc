"""A profile that torch writes here and now, on the CPU: read whole, also when torch writes illegal JSON."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from warpline.cli.main import run
from warpline.trace.open import open_trace

torch = pytest.importorskip("torch")


def record(path: Path, name: str) -> Path:
    from torch.profiler import ProfilerActivity, profile, record_function, schedule  # noqa: PLC0415

    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=1, active=3, repeat=1),
        on_trace_ready=lambda profiler: profiler.export_chrome_trace(str(path)),
        record_shapes=True,
        with_stack=True,
    ) as profiler:
        for _ in range(4):
            with record_function(name):
                model(torch.randn(8, 16)).sum().backward()
            profiler.step()
    return path


def test_a_cpu_profile_is_read_and_says_that_no_gpu_is_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = record(tmp_path / "trace.json", "forward and backward")
    trace = open_trace(path)
    assert len(trace.all_steps) == 3
    assert trace.ranges.stored["name"].cast(pl.String).to_list().count("forward and backward") == 3
    linear = trace.ops.stored.filter(pl.col("name").cast(pl.String) == "aten::addmm")
    assert len(linear) == 6
    assert linear["shapes"].null_count() == 0
    assert linear["module"].null_count() == 0
    backward = trace.ops.stored.filter(pl.col("name").cast(pl.String) == "AddmmBackward0")
    assert set(trace.ops.stored["name"].gather(backward["forward_op"]).cast(pl.String)) == {"aten::addmm"}
    assert run(["diagnose", str(path), "--json"]) == 0
    health = json.loads(capsys.readouterr().out)["trace"]["health"]
    assert [entry["code"] for entry in health] == ["no-gpu-work"]


def test_quotes_in_a_range_name_cost_at_most_the_range(tmp_path: Path) -> None:
    path = record(tmp_path / "trace.json", 'say "hello"')
    trace = open_trace(path)
    assert len(trace.ops.stored.filter(pl.col("name").cast(pl.String) == "aten::addmm")) == 6
    try:
        json.loads(path.read_text())
    except json.JSONDecodeError:  # torch 2.13.0 does not escape the quotes
        assert "malformed-events" in {entry.code for entry in trace.health_entries}
    else:
        assert trace.ranges.stored["name"].cast(pl.String).to_list().count('say "hello"') == 3
