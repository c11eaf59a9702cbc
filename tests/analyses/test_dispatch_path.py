"""The path of an op and the dispatch budget, worked out on paper."""

from __future__ import annotations

from pathlib import Path

import pytest
from kineto_files import annotation, call, frame, kernel, launched, op, write
from paths import DATA

from warpline.analyses.budget import Budget, budget_of
from warpline.analyses.dispatch_path import dispatch_path
from warpline.errors import CannotAnswer, UsageError
from warpline.trace.open import open_trace
from warpline.trace.trace import Trace


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    events = [
        annotation("ProfilerStep#0", 0, 400),
        frame("train.py(7): step", 0, 400, 1, None),
        op("aten::relu", 0, 20, external=1),
        op("aten::linear", 30, 100, external=2),  # 10 µs of Python before it
        op("aten::addmm", 40, 60, external=3),
        call("cudaLaunchKernel", 50, 10, 1, external=3),
        kernel("gemm", 70, 40, 1),  # 10 µs in the queue
        call("cudaLaunchKernel", 80, 10, 2, external=3),
        kernel("bias", 110, 5, 2),  # 20 µs in the queue
    ]
    return open_trace(write(tmp_path, events))


def test_each_layer_is_measured(trace: Trace) -> None:
    row = next(row for row in dispatch_path(trace).rows(named=True) if row["name"] == "aten::linear")
    assert (row["count"], row["per_step"], row["launches"], row["depth"]) == (1, 1.0, 2.0, 2)
    assert (row["python_ns"], row["framework_ns"], row["api_ns"]) == (10_000, 80_000, 20_000)
    assert (row["queue_ns"], row["kernel_ns"]) == (15_000, 45_000)
    assert row["hidden_share"] == 0.45  # the device is busy from 70 to 115 of 30 to 130
    assert (row["file"], row["line"]) == ("train.py", 7)


def test_one_op_can_be_asked_for_at_any_depth(trace: Trace) -> None:
    (row,) = dispatch_path(trace, "aten::addmm").rows(named=True)
    assert (row["framework_ns"], row["launches"]) == (40_000, 2.0)
    with pytest.raises(UsageError, match=r"aten::linear"):
        dispatch_path(trace, "aten::nope")


def test_a_file_without_ops_cannot_answer() -> None:
    with pytest.raises(CannotAnswer, match="no framework ops"):
        dispatch_path(open_trace(DATA / "nsys" / "graph_node.sqlite.gz"))


def test_a_step_is_bound_by_the_slower_side() -> None:
    launches = Budget(ops=1000, cpu_ns=10_000, gpu_ns=4_000)
    assert (launches.bound, launches.step_ns, launches.crossover_ops) == ("cpu", 10e6, 400)
    assert launches.graph_ns(5_000, 500) == 5_000 + 4e6 + 1000 * 500
    assert launches.fused_ns(5) == 4e6
    assert Budget(ops=10, cpu_ns=10_000, gpu_ns=50_000).bound == "gpu"


def test_the_budget_of_a_trace(trace: Trace) -> None:
    found = budget_of(trace)
    assert (found.ops, found.cpu_ns, found.gpu_ns) == (2, 200_000, 22_500)


def test_work_that_runs_after_the_steps_that_launched_it_counts(tmp_path: Path) -> None:
    """Three steps of 20 µs launch a kernel of 100 µs each; the device falls behind."""
    events = []
    for step in range(3):
        events += launched("gemm", 20 * step + 1, 10 + 100 * step, 100, step + 1)
        events.append(annotation(f"ProfilerStep#{step}", 20 * step, 20))
    found = budget_of(open_trace(write(tmp_path, events)))
    assert (found.ops, found.cpu_ns, found.gpu_ns) == (1, 20_000, 100_000)
