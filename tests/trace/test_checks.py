"""Each health entry from the smallest trace that deserves it; and none from a healthy one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kineto_files import annotation, call, kernel, launched, op, write
from paths import DATA

from warpline.trace.open import open_trace

Events = list[dict[str, Any]]


def codes(path: Path) -> dict[str, str]:
    return {entry.code: entry.severity for entry in open_trace(path).health_entries}


def healthy() -> Events:
    events: Events = []
    for number in range(20):
        moment = 100 * number + 0.25
        shapes = {"Input Dims": [[4, 4]]}
        events += [
            op("aten::relu", moment, 20, external=number + 1, **shapes),
            *launched("relu", moment + 5, moment + 15, 30, number + 1),
        ]
    return events


def test_a_healthy_trace_has_nothing_to_say(tmp_path: Path) -> None:
    assert codes(write(tmp_path, healthy())) == {}


def test_a_kernel_may_be_longer_than_the_one_launch_that_was_recorded(tmp_path: Path) -> None:
    assert "impossible-duration" not in codes(write(tmp_path, launched("long", 0.5, 10.5, 9_999, 1)))


def test_an_op_of_cudnn_shows_that_the_gpu_was_not_profiled(tmp_path: Path) -> None:
    """Whether cuDNN is acceptable is asked of tensors of the CPU, too."""
    asked = [op("aten::cudnn_is_acceptable", 0, 10, external=1)]
    assert codes(write(tmp_path, asked))["no-gpu-work"] == "warning"
    run = write(tmp_path, [*asked, op("aten::cudnn_convolution", 20, 900, external=2)])
    assert codes(run)["no-gpu-work"] == "error"
    message = next(entry.message for entry in open_trace(run).health_entries if entry.code == "no-gpu-work")
    assert "aten::cudnn_convolution runs on a GPU: only the CPU was profiled" in message


def test_the_backward_pass_of_a_linear_layer_is_one_op_on_an_apple_gpu_alone(tmp_path: Path) -> None:
    """On a CPU it is two matmuls (AddmmBackward0)."""
    on_cpu = [op("AddmmBackward0", 0, 100, external=1), op("aten::mm", 10, 40, external=2)]
    assert codes(write(tmp_path, on_cpu))["no-gpu-work"] == "warning"
    on_mps = [op("LinearBackward0", 0, 100, external=1), op("aten::linear_backward", 10, 80, external=2)]
    assert codes(write(tmp_path, on_mps))["no-gpu-work"] == "error"


CASES: dict[str, tuple[Events, str]] = {
    "empty-trace": ([], "error"),
    "no-gpu-work": ([op("aten::relu", 0, 10, external=1)], "warning"),
    "no-launches": ([kernel("k", 0, 10, 1)], "warning"),
    "work-without-launch": ([*healthy(), kernel("k", 2500, 100, 999)], "warning"),
    "profiler-start-skew": (
        [call("cudaLaunchKernel", 50, 5, 70), kernel("a", 0, 10, 3), kernel("b", 60, 10, 70)],
        "info",
    ),
    "launch-without-work": ([*healthy(), call("cudaLaunchKernel", 2500, 5, 999)], "warning"),
    "overlap-on-stream": ([*healthy(), *launched("late", 10.5, 20.5, 900, 999)], "warning"),
    "impossible-duration": ([*healthy(), *launched("endless", 1905.5, 1999.5, 9_999, 999)], "error"),
    "zero-durations": (
        [event for n in range(12) for event in launched("k", n * 9 + 0.5, n * 9 + 5.5, 0, n + 1)],
        "warning",
    ),
    "clock-skew": ([*healthy(), call("cudaLaunchKernel", 2500, 5, 999), kernel("early", 2400, 5, 999)], "warning"),
    "clock-jump": ([*healthy(), *launched("later", 9e8, 9e8 + 10, 5, 999)], "warning"),
    "missing-shapes": ([op("aten::relu", 0, 10, external=1), *launched("k", 2, 5, 5, 1)], "info"),
    "empty-steps": (
        [*healthy(), annotation("ProfilerStep#1", 0, 1000), annotation("ProfilerStep#2", 5000, 1000)],
        "warning",
    ),
    "negative-duration": ([*healthy(), op("aten::bad", 300, -5, external=77)], "warning"),
    "unknown-category": ([*healthy(), op("x", 0, 5) | {"cat": "brand_new"}], "info"),
    "impossible-time": ([*healthy(), op("x", 9e14, 5, external=78)], "error"),
}


def test_events_with_times_beyond_64_bits_are_not_called_missing(tmp_path: Path) -> None:
    file = write(tmp_path, [op("aten::add", 1e30, 5, external=1)])
    messages = [entry.message for entry in open_trace(file, cache=False).health_entries]
    assert "Left out: 1 event without a time, or with one that does not fit in 64 bits." in messages
    assert "The file contains no events that can be used." in messages


@pytest.mark.parametrize("code", CASES)
def test_each_oddity_is_named(tmp_path: Path, code: str) -> None:
    events, severity = CASES[code]
    assert codes(write(tmp_path, events)).get(code) == severity


def test_a_step_whose_work_runs_after_it_is_not_empty(tmp_path: Path) -> None:
    events = [annotation("ProfilerStep#1", 0, 50), annotation("ProfilerStep#2", 50, 50)]
    events += [*launched("a", 10, 200, 100, 1), *launched("b", 60, 300, 100, 2)]
    assert "empty-steps" not in codes(write(tmp_path, events))


def test_launches_while_a_graph_is_captured_lack_nothing(tmp_path: Path) -> None:
    capture = [
        call("cudaStreamBeginCapture_v10000", 2500, 5, 900),
        call("cudaLaunchKernel", 2510, 5, 901),
        call("cudaStreamEndCapture", 2520, 5, 902),
    ]
    assert "launch-without-work" not in codes(write(tmp_path, healthy() + capture))


def test_graph_kernels_may_overlap_on_one_stream(tmp_path: Path) -> None:
    graph = [call("cudaGraphLaunch", 2500, 5, 900), kernel("left", 2520, 50, 900), kernel("right", 2525, 50, 900)]
    assert "overlap-on-stream" not in codes(write(tmp_path, healthy() + graph))


@pytest.mark.parametrize(("device", "stream", "overlap"), [(0, 7, True), (1, 7, False), (0, 8, False), (1, 8, False)])
def test_kernels_overlap_on_a_stream_of_one_device(tmp_path: Path, device: int, stream: int, overlap: bool) -> None:
    calls = [call("cudaLaunchKernel", 2500.5, 5, 900), call("cudaLaunchKernel", 2506.5, 5, 901)]
    work = [kernel("one", 2520.5, 50, 900), kernel("other", 2540.5, 50, 901, device=device, stream=stream)]
    assert ("overlap-on-stream" in codes(write(tmp_path, healthy() + calls + work))) is overlap


def test_unified_memory_migrations_need_no_launch() -> None:
    trace = open_trace(DATA / "nsys" / "graph_bar.sqlite.gz")
    assert trace.gpu.stored["copy_kind"].cast(str).str.starts_with("Unified").sum() > 0
    assert "work-without-launch" not in {entry.code for entry in trace.health_entries}


def test_a_truncated_file_says_so(tmp_path: Path) -> None:
    path = write(tmp_path, healthy())
    path.write_bytes(path.read_bytes()[:-2000])
    entries = {entry.code: entry for entry in open_trace(path).health_entries}
    assert entries["truncated-file"].severity == "error"


def test_unescaped_quotes_cost_one_event(tmp_path: Path) -> None:
    path = write(tmp_path, [*healthy(), annotation("MARK", 10, 20), annotation("fine", 40, 20)])
    path.write_text(path.read_text().replace("MARK", 'say "hello" to them'))
    trace = open_trace(path)
    assert [entry.code for entry in trace.health_entries] == ["malformed-events"]
    assert len(trace.gpu) == 20
    assert trace.ranges.stored["name"].to_list() == ["fine"]
