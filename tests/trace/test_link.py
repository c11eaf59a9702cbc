"""From a line of Python to the GPU, on a trace small enough to check by eye."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from kineto_files import AUTOGRAD, annotation, call, copy, frame, kernel, op, write

from warpline.trace.open import open_trace
from warpline.trace.trace import Trace


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    events = [
        frame("train.py(10): step", 0, 500, 1, None),
        frame("nn.Module: Linear_0", 5, 200, 2, 1),
        frame("torch/nn/modules/linear.py(130): forward", 8, 190, 3, 2),
        annotation("forward", 4, 240),
        annotation("inner", 6, 100),
        op(
            "aten::linear",
            10,
            100,
            external=1,
            **{"Sequence number": 7, "Fwd thread id": 0, "Input Dims": [[8, 4], [4, 4]]},
        ),
        op("aten::addmm", 20, 50, external=2, **{"Sequence number": 7, "Fwd thread id": 0}),
        call("cudaLaunchKernel", 30, 5, 11, external=2),
        kernel("gemm", 60, 40, 11),
        call("cuLaunchKernelEx", 150, 5, 12, category="cuda_driver"),
        kernel("triton_poi_fused_0", 160, 20, 12),
        call("cudaGraphLaunch", 220, 10, 13),
        kernel("in_graph_a", 240, 10, 13),
        kernel("in_graph_b", 250, 10, 13),
        op(
            "autograd::engine::evaluate_function: AddmmBackward0",
            300,
            50,
            thread=AUTOGRAD,
            external=3,
            **{"Sequence number": 7, "Fwd thread id": 1},
        ),
        op("AddmmBackward0", 301, 45, thread=AUTOGRAD, external=4, **{"Sequence number": 7, "Fwd thread id": 1}),
        call("cudaLaunchKernel", 310, 5, 14, thread=AUTOGRAD, external=4),
        kernel("gemm_backward", 330, 30, 14),
        op("aten::to", 400, 80, external=5),
        call("cudaMemcpyAsync", 410, 60, 15, external=5),
        copy("Memcpy DtoH (Device -> Pageable)", 430, 10, 15, 1024),
        kernel("orphan", 470, 5, 99),
    ]
    return open_trace(write(tmp_path, events))


def op_of(trace: Trace, kernel_name: str) -> str | None:
    row = trace.gpu.stored.filter(pl.col("name").cast(pl.String) == kernel_name).row(0, named=True)
    return None if row["op_id"] is None else str(trace.ops.stored["name"][row["op_id"]])


def call_of(trace: Trace, kernel_name: str) -> str | None:
    row = trace.gpu.stored.filter(pl.col("name").cast(pl.String) == kernel_name).row(0, named=True)
    return None if row["api_id"] is None else str(trace.api.stored["name"][row["api_id"]])


def test_a_kernel_belongs_to_the_innermost_op_around_its_launch(trace: Trace) -> None:
    assert call_of(trace, "gemm") == "cudaLaunchKernel"
    assert op_of(trace, "gemm") == "aten::addmm"


def test_driver_launches_are_launches(trace: Trace) -> None:
    assert call_of(trace, "triton_poi_fused_0") == "cuLaunchKernelEx"
    assert op_of(trace, "triton_poi_fused_0") is None


def test_all_kernels_of_a_graph_belong_to_its_launch(trace: Trace) -> None:
    assert call_of(trace, "in_graph_a") == call_of(trace, "in_graph_b") == "cudaGraphLaunch"


def test_copies_are_linked_too(trace: Trace) -> None:
    assert op_of(trace, "Memcpy DtoH (Device -> Pageable)") == "aten::to"
    row = trace.gpu.stored.filter(pl.col("kind").cast(pl.String) == "memcpy").row(0, named=True)
    assert (row["copy_kind"], row["source_memory"], row["target_memory"], row["bytes"]) == (
        "DtoH",
        "Device",
        "Pageable",
        1024,
    )


def test_backward_work_belongs_to_the_autograd_thread_and_to_its_forward_op(trace: Trace) -> None:
    assert op_of(trace, "gemm_backward") == "AddmmBackward0"
    backward = trace.ops.stored.filter(pl.col("name").cast(pl.String) == "AddmmBackward0").row(0, named=True)
    assert trace.ops.stored["name"][backward["forward_op"]] == "aten::addmm"


def test_a_kernel_without_a_launch_is_kept_and_flagged(trace: Trace) -> None:
    assert call_of(trace, "orphan") is None
    assert len(trace.gpu) == 7
    entry = next(entry for entry in trace.health_entries if entry.code == "work-without-launch")
    assert "1 of 7" in entry.message


def test_ops_nest(trace: Trace) -> None:
    addmm = trace.ops.stored.filter(pl.col("name").cast(pl.String) == "aten::addmm").row(0, named=True)
    assert trace.ops.stored["name"][addmm["parent"]] == "aten::linear"
    assert addmm["depth"] == 1


def test_ops_know_their_python_line_and_module(trace: Trace) -> None:
    linear = trace.ops.stored.filter(pl.col("name").cast(pl.String) == "aten::linear").row(0, named=True)
    assert trace.python.stored["name"][linear["frame"]] == "torch/nn/modules/linear.py(130): forward"
    assert linear["module"] == "Linear_0"
    to = trace.ops.stored.filter(pl.col("name").cast(pl.String) == "aten::to").row(0, named=True)
    assert trace.python.stored["name"][to["frame"]] == "train.py(10): step"
    assert to["module"] is None


def test_ranges_span_the_gpu_work_launched_within_them(trace: Trace) -> None:
    forward = trace.ranges.stored.filter(pl.col("name").cast(pl.String) == "forward").row(0, named=True)
    inner = trace.ranges.stored.filter(pl.col("name").cast(pl.String) == "inner").row(0, named=True)
    assert (inner["gpu_start_ns"], inner["gpu_end_ns"]) == (60_000, 100_000)
    assert (forward["gpu_start_ns"], forward["gpu_end_ns"]) == (60_000, 260_000)
    assert trace.ranges.stored["name"][inner["parent"]] == "forward"


def test_shapes_stay_as_text(trace: Trace) -> None:
    shapes = trace.ops.stored.filter(pl.col("name").cast(pl.String) == "aten::linear")["shapes"][0]
    assert "".join(str(shapes).split()) == "[[8,4],[4,4]]"


def test_an_external_id_of_another_time_is_not_believed(tmp_path: Path) -> None:
    events = [
        op("aten::old", 0, 10, external=50),
        op("aten::real", 5_000, 100, external=51),
        call("cudaLaunchKernel", 5_010, 5, 1, external=50),
        kernel("k", 5_030, 5, 1),
    ]
    assert op_of(open_trace(write(tmp_path, events)), "k") == "aten::real"


def test_equal_correlations_of_two_processes_are_kept_apart(tmp_path: Path) -> None:
    events = [
        call("cudaLaunchKernel", 0, 5, 1, process=1),
        call("cudaLaunchKernel", 50, 5, 1, process=2),
        call("cudaMemcpyAsync", 60, 5, 2, process=2),
        kernel("which", 10, 5, 1),
        kernel("second", 70, 5, 2),
    ]
    trace = open_trace(write(tmp_path, events))
    assert call_of(trace, "which") is None
    assert call_of(trace, "second") == "cudaMemcpyAsync"


def test_a_frame_that_ends_a_rounding_error_after_its_caller_stays_in_it(tmp_path: Path) -> None:
    frames = [frame("train.py(1): main", 0.001, 99.998, 1, None), frame("train.py(9): step", 10.002, 89.998, 2, 1)]
    trace = open_trace(write(tmp_path, [*frames, frame("train.py(20): loss", 50.0, 20.0, 3, 2)]))
    assert (trace.python.stored["end_ns"] - trace.python.stored["end_ns"][0]).to_list()[1] == 1
    assert trace.python.stored["parent"].to_list() == [None, 0, 1]


def test_a_range_begun_before_a_step_and_ended_in_it_hides_no_parent(tmp_path: Path) -> None:
    spans = [("step 0", 0, 100), ("crossing", 90, 20), ("step 1", 105, 100), ("loading", 130, 10)]
    trace = open_trace(write(tmp_path, [annotation(name, start, length) for name, start, length in spans]))
    assert trace.ranges.stored["parent"].to_list() == [None, None, None, 2]
