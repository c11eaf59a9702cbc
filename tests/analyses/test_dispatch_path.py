"""The path of an op and the dispatch budget, worked out on paper."""

from __future__ import annotations

from pathlib import Path

import pytest
from kineto_files import AUTOGRAD, annotation, call, copy, frame, kernel, launched, op, write
from nsys_files import small
from paths import DATA, SHARED

from warpline.analyses.budget import DispatchBudget, budget_of
from warpline.analyses.dispatch_path import dispatch_path
from warpline.analyses.ops import ops_table
from warpline.errors import CannotAnswer, UsageError
from warpline.replay.bare_path import bare_path
from warpline.replay.costs.host import host_costs
from warpline.reports.path import path_report
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
    assert (row["count"], row["per_step"], row["launches"], row["ops"], row["depth"]) == (1, 1.0, 2.0, 2, 2)
    assert (row["python_ns"], row["framework_ns"], row["api_ns"]) == (10_000, 80_000, 20_000)
    assert (row["queue_ns"], row["kernel_ns"]) == (15_000, 45_000)
    assert row["hidden_share"] == 0.45  # the device is busy from 70 to 115 of 30 to 130
    assert (row["file"], row["line"]) == ("train.py", 7)


def test_other_ops_between_are_no_python(tmp_path: Path) -> None:
    events = [op("aten::linear", 0, 20), op("aten::relu", 30, 40), op("aten::linear", 75, 20)]
    (row,) = dispatch_path(open_trace(write(tmp_path, events)), "aten::linear").rows(named=True)
    assert row["python_ns"] == 2_500  # none before the first, 5 µs before the second


def test_frames_of_built_in_functions_show_the_boundary_to_cpp(tmp_path: Path) -> None:
    events = [
        frame("train.py(7): step", 0, 200, 1, None),
        frame("<built-in method relu of type object at 0x1>", 10, 30, 2, 1),
        op("aten::relu", 15, 20, external=1),  # 5 µs in, 5 µs out
        frame("<built-in function linear>", 50, 60, 3, 1),
        op("aten::linear", 57, 40, external=2),  # 5 µs out of relu, 10 of Python, 7 in; 13 out
    ]
    rows = {row["name"]: row for row in dispatch_path(open_trace(write(tmp_path, events))).rows(named=True)}
    relu, linear = rows["aten::relu"], rows["aten::linear"]
    assert (relu["boundary_ns"], linear["boundary_ns"]) == (10_000, 20_000)
    assert linear["python_ns"] == 10_000


def test_without_stacks_the_boundary_is_unknown(trace: Trace) -> None:
    assert dispatch_path(trace)["boundary_ns"].null_count() == len(dispatch_path(trace))


def test_one_op_can_be_asked_for_at_any_depth(trace: Trace) -> None:
    (row,) = dispatch_path(trace, "aten::addmm").rows(named=True)
    assert (row["framework_ns"], row["launches"]) == (40_000, 2.0)
    with pytest.raises(UsageError, match=r"aten::linear"):
        dispatch_path(trace, "aten::nope")


def test_the_layers_sum_to_the_time_before_the_kernel(trace: Trace) -> None:
    (row,) = dispatch_path(trace, "aten::linear").rows(named=True)
    assert row["before_ns"] == 10_000 + 80_000 + 20_000


def test_a_kernel_without_an_op_has_its_own_path(tmp_path: Path) -> None:
    """Triton launches 15 µs after the op before it: Python; its call takes 5 µs, the queue 10."""
    events = [op("aten::empty", 0, 10), *launched("saxpy", 25, 40, 30, 1)]
    (row,) = dispatch_path(open_trace(write(tmp_path, events)), "saxpy").rows(named=True)
    assert (row["python_ns"], row["framework_ns"], row["api_ns"], row["kernel_ns"]) == (15_000, 0, 5_000, 30_000)
    assert (row["before_ns"], row["queue_ns"], row["depth"]) == (20_000, 10_000, 0)


def test_kernels_that_one_call_launches_share_the_path_of_the_call(tmp_path: Path) -> None:
    """A graph of three kernels is launched in 6 µs, 15 µs after an op: that is not 6 µs a kernel."""
    graph = [
        call("cudaGraphLaunch", 25, 6, 1),
        *(kernel("scale", 40 + 10 * at, length, 1) for at, length in ((0, 5), (1, 9))),
    ]
    events = [op("aten::empty", 0, 10), *graph, kernel("add", 60, 4, 1)]
    trace = open_trace(write(tmp_path, events))
    for asked in (None, "cudaGraphLaunch"):
        row = next(row for row in dispatch_path(trace, asked).rows(named=True) if row["name"] == "cudaGraphLaunch")
        assert (row["count"], row["launches"], row["api_ns"], row["kernel_ns"]) == (1, 3, 6_000, 18_000)
        assert (row["kernel"], row["depth"]) == ("scale", 0)
    report = str(path_report(bare_path(trace), "title"))
    assert "cudaGraphLaunch → 3 kernels" in report
    assert "the longest: scale" in report


def test_without_steps_ops_are_counted_in_all(tmp_path: Path) -> None:
    events = [
        event for at in (0, 100) for event in (op("aten::mm", at, 10), *launched("gemm", at + 2, at + 20, 9, at + 1))
    ]
    table = bare_path(open_trace(write(tmp_path, events)))
    assert "aten::mm, 2 in all" in str(path_report(table, "title", has_steps=False))
    assert "aten::mm, 2 a step" in str(path_report(table, "title"))


def test_an_op_that_mostly_copies_is_named_after_no_kernel(tmp_path: Path) -> None:
    copy = kernel("Memcpy DtoH (Device -> Pageable)", 10, 24_000, 2, category="gpu_memcpy", bytes=10)
    events = [op("aten::to", 0, 24_020), *launched("cast", 2, 5, 3, 1), call("cudaMemcpyAsync", 8, 24_005, 2), copy]
    trace = open_trace(write(tmp_path, events))
    assert dispatch_path(trace, "aten::to")["kernel"].to_list() == [None]
    report = str(path_report(bare_path(trace, "aten::to"), "title"))
    assert "starts the copy or memset, and may wait for it" in report
    assert "e+0" not in report


def test_recording_is_taken_out_of_each_layer(trace: Trace) -> None:
    """One op calls another with two launches: half an event of the outer lies in Python, half and the start of the inner
    in the dispatcher; half of the inner and of two calls in the backend, the other halves in the calls."""
    (row,) = bare_path(trace, "aten::linear").rows(named=True)
    prices = host_costs(trace).recording
    op_ns, call_ns = prices.op.expected, prices.call.expected
    assert row["bare_dispatcher_ns"] == pytest.approx(40_000 - op_ns)
    assert row["bare_backend_ns"] == pytest.approx(40_000 - op_ns / 2 - call_ns)
    assert row["bare_api_ns"] == pytest.approx(20_000 - call_ns)
    layers = ("python", "native", "autograd", "dispatcher", "backend", "api")
    assert row["bare_before_ns"] == pytest.approx(sum(row[f"bare_{layer}_ns"] for layer in layers))
    assert row["bare_before_low_ns"] < row["bare_before_ns"] < row["bare_before_high_ns"] < row["before_ns"]


def test_a_file_without_ops_cannot_answer() -> None:
    with pytest.raises(CannotAnswer, match="no framework ops"):
        dispatch_path(open_trace(DATA / "nsys" / "graph_node.sqlite.gz"))


def test_a_step_is_bound_by_the_slower_side() -> None:
    launches = DispatchBudget(ops=1000, cpu_ns=10_000, gpu_ns=4_000)
    assert (launches.bound, launches.step_ns, launches.crossover_ops) == ("cpu", 10e6, 400)
    assert launches.graph_ns(5_000, 500) == 5_000 + 4e6 + 1000 * 500
    assert launches.fused_ns(5) == 4e6
    assert DispatchBudget(ops=10, cpu_ns=10_000, gpu_ns=50_000).bound == "gpu"


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


def test_the_gpu_time_is_that_of_the_busiest_device(tmp_path: Path) -> None:
    """Two devices work beside each other, for 30 and 50 µs: a step of both is 50 µs long."""
    events = [
        annotation("ProfilerStep#0", 0, 100),
        call("cudaLaunchKernel", 0, 5, 1),
        kernel("gemm", 10, 30, 1, device=0),
        call("cudaLaunchKernel", 10, 5, 2),
        kernel("gemm", 40, 50, 2, device=1),
    ]
    found = budget_of(open_trace(write(tmp_path, events), cache=False))
    assert (found.ops, found.work_ns) == (2, 50_000)


def test_waits_and_work_from_before_are_no_dispatch(tmp_path: Path) -> None:
    """In a step of 200 µs, the CPU waits 60 µs in a copy, launches for 40 and stops; an operation that was launched
    before the recording runs for 50."""
    events = [
        annotation("step[EXTEND bs=15]", 0, 100),
        kernel("from before", 0, 50, 99),
        call("cudaMemcpy", 0, 60, 1),
        copy("Memcpy HtoD (Pageable -> Device)", 55, 5, 1, 100),
        *launched("gemm", 60, 65, 100, 2),
        call("cudaLaunchKernel", 95, 5, 3),
        kernel("gemm", 165, 35, 3),
    ]
    found = budget_of(open_trace(write(tmp_path, events), cache=False))
    assert (found.ops * found.cpu_ns, found.ops * found.gpu_ns) == (40_000, 140_000)


def test_a_launch_that_waits_for_space_in_the_queue_is_no_dispatch(tmp_path: Path) -> None:
    """The CPU launches 600 kernels of 100 µs, one every 10 µs. The next launch waits 4 ms; 100 µs later the step ends."""
    events = [annotation("ProfilerStep#0", 0, 10_100)]
    for number in range(600):
        events.append(call("cudaLaunchKernel", 10 * number, 5, number + 1))
        events.append(kernel("gemm", 10 + 100 * number, 100, number + 1))
    events += [call("cudaLaunchKernel", 6_000, 4_000, 601), kernel("gemm", 60_010, 100, 601)]
    found = budget_of(open_trace(write(tmp_path, events), cache=False))
    assert (found.ops, found.dispatch_ns) == (601, pytest.approx(6_100_000))


def test_a_long_launch_of_a_graph_is_dispatch_whatever_its_size(tmp_path: Path) -> None:
    """The same launch, 4 ms after one graph of 600 kernels: a graph takes one place in the queue."""
    events = [annotation("ProfilerStep#0", 0, 10_100), call("cudaGraphLaunch", 0, 5, 1)]
    events += [kernel("gemm", 10 + 100 * number, 100, 1) for number in range(600)]
    events += [call("cudaLaunchKernel", 10 * number, 5, number) for number in range(2, 12)]
    events += [kernel("gemm", 60_010 + 100 * number, 100, number) for number in range(2, 12)]
    events += [call("cudaGraphLaunch", 6_000, 4_000, 12), kernel("gemm", 70_000, 100, 12)]
    found = budget_of(open_trace(write(tmp_path, events), cache=False))
    # To 115 µs, then a pause that is too long for Python, then the launch and the end of the step.
    assert found.dispatch_ns == pytest.approx(115_000 + 4_100_000)


def test_steps_known_from_the_device_are_dispatched_where_they_are_launched(tmp_path: Path) -> None:
    """The CPU launches eight kernels of 100 µs within 80 µs, and is done before the second runs."""
    events = []
    for number in range(8):
        events += launched("gemm", 10 * number, 100 + 100 * number, 100, number + 1)
        events += launched("relu", 10 * number + 5, 195 + 100 * number, 5, number + 101)
    trace = open_trace(write(tmp_path, events), cache=False)
    assert trace.all_steps.found_by[0] == "repetition"
    found = budget_of(trace)
    assert found.ops == 2
    assert found.dispatch_ns <= 10_000


def test_long_pauses_and_the_time_of_other_threads_are_no_dispatch(tmp_path: Path) -> None:
    """In a step of 1 ms, the main thread launches for 100 µs and pauses for 900; the autograd thread launches for 50 µs
    at the same time."""
    events = [
        annotation("ProfilerStep#0", 0, 1000),
        op("aten::linear", 0, 100, external=1),
        *launched("gemm", 10, 30, 10, 1),
        call("cudaLaunchKernel", 40, 50, 2, thread=AUTOGRAD),
        kernel("backward", 95, 5, 2),
    ]
    found = budget_of(open_trace(write(tmp_path, events), cache=False))
    assert found.dispatch_ns == 100_000


def test_a_trace_without_steps_has_no_budget(tmp_path: Path) -> None:
    with pytest.raises(CannotAnswer, match="no steps"):
        budget_of(open_trace(write(tmp_path, launched("gemm", 0, 10, 5, 1)), cache=False))


@pytest.mark.parametrize(("source", "said"), [("kineto", "the CPU was not recorded"), ("nsys", "nsys records none")])
def test_why_there_are_no_ops_depends_on_the_profiler(source: str, said: str, tmp_path: Path) -> None:
    export = write(tmp_path, [*launched("gemm", 0, 10, 5, 1)]) if source == "kineto" else small().write(tmp_path / "x")
    trace = open_trace(export, cache=False)
    for question in (dispatch_path, ops_table):
        with pytest.raises(CannotAnswer, match=said):
            question(trace)


def test_the_framework_is_autograd_dispatcher_and_backend(trace: Trace) -> None:
    """linear takes 100 µs, 40 of them itself; addmm's 60 hold 20 of API calls: it is the backend."""
    row = next(row for row in dispatch_path(trace).rows(named=True) if row["name"] == "aten::linear")
    assert (row["autograd_ns"], row["dispatcher_ns"], row["backend_ns"]) == (0, 40_000, 40_000)
    assert row["autograd_ns"] + row["dispatcher_ns"] + row["backend_ns"] == row["framework_ns"]
    assert (row["kernel"], row["native_share"]) == ("gemm", 0.0)


def test_backward_is_called_from_cpp_and_has_autograd_time(tmp_path: Path) -> None:
    node = "autograd::engine::evaluate_function: AddmmBackward0"
    events = [
        op("aten::relu", 0, 20, external=1),
        op(node, 0, 50, thread=AUTOGRAD, external=2),
        op(node, 60, 100, thread=AUTOGRAD, external=3),  # 10 µs after the one before
        op("AddmmBackward0", 70, 80, thread=AUTOGRAD, external=4),
        op("aten::mm", 80, 60, thread=AUTOGRAD, external=5),
        call("cudaLaunchKernel", 90, 15, 1, thread=AUTOGRAD, external=5),
        kernel("gemm", 120, 40, 1),
    ]
    table = dispatch_path(open_trace(write(tmp_path, events)))
    row = next(row for row in table.rows(named=True) if row["name"] == node)
    assert (row["python_ns"], row["native_ns"], row["native_share"]) == (0, 5_000, 1.0)  # means of two
    assert (row["autograd_ns"], row["dispatcher_ns"], row["backend_ns"]) == (45_000, 0, 22_500)
    (inner,) = dispatch_path(open_trace(tmp_path / "trace.json"), "aten::mm").rows(named=True)
    assert (inner["python_ns"], inner["native_share"]) == (0, 1.0)


@pytest.mark.shared
@pytest.mark.parametrize("name", ["bad_training", "llama_train", "compiled", "layer_eager"])
def test_layers_of_recordings_sum_to_the_framework(name: str) -> None:
    table = dispatch_path(open_trace(SHARED / f"h200/kineto/{name}.json.gz"))
    for row in table.rows(named=True):
        parts = row["autograd_ns"] + row["dispatcher_ns"] + row["backend_ns"]
        assert parts == pytest.approx(row["framework_ns"], abs=1e-3)
