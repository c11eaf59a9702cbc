"""Chrome traces that torch.profiler did not write: read where they hold GPU work, else refused with a true sentence."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from kineto_files import Event, call, op

from warpline.analyses.device import trace_device
from warpline.analyses.framework import framework_of
from warpline.cli.main import run
from warpline.doctor.files import examine_file
from warpline.errors import UnreadableFile
from warpline.sources.detect import detect
from warpline.sources.kinds import EXECUTION_TRACE
from warpline.sources.kineto import read_kineto
from warpline.trace.open import build, open_trace

GPU, HOST, STREAM, OPS, PYTHON = 1, 701, 13, 20, 5


def named(what: str, name: str, process: int, thread: int | None = None) -> Event:
    where = {"pid": process} if thread is None else {"pid": process, "tid": thread}
    return {"ph": "M", "name": f"{what}_name", **where, "args": {"name": name}}


def span(name: str, process: int | str, thread: int, start: float, length: float, **args: Any) -> Event:
    return {"ph": "X", "name": name, "pid": process, "tid": thread, "ts": start, "dur": length, "args": args}


def written(folder: Path, events: list[Event] | dict[str, Any]) -> Path:
    path = folder / "trace.json"
    path.write_text(json.dumps(events))
    return path


def jax_events(steps: int = 4) -> list[Event]:
    """A kernel and a copy a step, as JAX's profiler writes them: no category, numbers in quotes."""
    events = [
        named("process", "/device:GPU:0 NVIDIA A100", GPU),
        named("thread", "Stream #13(Compute)", GPU, STREAM),
        named("thread", "XLA Ops", GPU, OPS),
        named("process", "/host:CPU", HOST),
        named("thread", "python", HOST, PYTHON),
    ]
    for step in range(steps):
        start = 100.0 * step
        launch, read = str(2 * step + 1), str(2 * step + 2)
        events += [
            span("$train.py:12 step", HOST, PYTHON, start, 90),
            span("PjitFunction(step)", HOST, PYTHON, start + 1, 60),
            span("cuLaunchKernel", HOST, PYTHON, start + 10, 5, correlation_id=launch),
            span("cuMemcpyDtoHAsync_v2", HOST, PYTHON, start + 20, 5, correlation_id=read),
            span("loop_multiply_fusion", GPU, STREAM, start + 20, 30, correlation_id=launch),
            span("fusion.1", GPU, OPS, start + 20, 30),  # the same time again, by HLO op
            span("MemcpyD2H", GPU, STREAM, start + 60, 5, correlation_id=read),
        ]
    return events


def test_a_jax_trace_is_read_with_its_launches(tmp_path: Path) -> None:
    trace = open_trace(written(tmp_path, {"displayTimeUnit": "ns", "traceEvents": jax_events()}), cache=False)
    assert trace.source == "xla"
    kinds = trace.gpu.stored["kind"].cast(pl.String).to_list()
    assert (kinds.count("kernel"), kinds.count("memcpy"), len(kinds)) == (4, 4, 8)
    assert set(trace.gpu.stored["stream"]) == {STREAM}
    assert set(trace.gpu.stored["device"]) == {0}
    assert trace.gpu.stored["api_id"].null_count() == 0
    copies = trace.gpu.stored.filter(pl.col("kind").cast(pl.String) == "memcpy")
    assert set(copies["copy_kind"].cast(pl.String)) == {"DtoH"}
    assert set(trace.python.stored["name"].cast(pl.String)) == {"train.py(12): step"}
    assert set(trace.ops.stored["name"].cast(pl.String)) == {"PjitFunction(step)"}
    assert framework_of(trace) == "other"


def test_a_gpu_without_a_name_is_not_no_gpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, {"traceEvents": jax_events()})
    assert run(["diagnose", str(path)]) == 0
    title = capsys.readouterr().out.splitlines()[0]
    assert "unnamed GPU" in title
    assert "no GPU" not in title


@pytest.mark.parametrize("scanner", ["native", "python"])
def test_both_scanners_read_a_jax_trace(scanner: Any, tmp_path: Path) -> None:
    path = written(tmp_path, {"traceEvents": jax_events()})
    trace = build(path, read_kineto(path, scanner))
    assert len(trace.gpu) == 8
    assert trace.gpu.stored["correlation"].to_list() == list(range(1, 9))


def test_the_autograd_profiler_of_old_torch_is_read(tmp_path: Path) -> None:
    events = [span("aten::mm", "CPU functions", 0, 0, 10), span("sgemm_128x64", "CUDA functions", 0, 5, 20)]
    trace = open_trace(written(tmp_path, events), cache=False)
    assert trace.source == "autograd"
    assert (len(trace.ops), len(trace.gpu)) == (1, 1)


def test_gpu_times_of_ops_are_no_kernels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`conv2d` calls `convolution`: the time of one holds that of the other, and neither is a kernel's."""
    ops = [("conv2d", 0, 100), ("convolution", 10, 80)]
    events = [span(name, process, 0, *times) for name, *times in ops for process in ("CPU functions", "CUDA functions")]
    path = written(tmp_path, events)
    trace = open_trace(path, cache=False)
    assert (len(trace.ops), len(trace.gpu), len(trace.ranges)) == (2, 0, 2)
    assert [entry.code for entry in trace.health_entries if entry.severity == "error"] == ["no-gpu-work"]
    assert run(["diagnose", str(path)]) == 0
    assert "No kernels are recorded" in " ".join(capsys.readouterr().out.split())


def rocprof_events() -> list[Event]:
    """A copy and a kernel on the third GPU, with the arrows that link them to their calls; numbers in quotes."""

    def arrow(phase: str, process: int, thread: int, moment: int, number: int) -> Event:
        place = {"pid": process, "tid": thread, "ts": moment}
        return {"ph": phase, "cat": "DataFlow", "name": "dep", "id": number, **place}

    return [
        {},
        named("process", "CPU HIP API", 2),
        named("process", "COPY", 1),
        named("process", "GPU0", 6),
        named("process", "GPU2", 8),
        span("CopyHostToDevice", "1", 1, 120, 8),
        span("scale_kernel", "8", 1, 220, 30),
        span("hipMemcpyWithStream", "2", 517, 100, 30),
        span("hipLaunchKernel", "2", 517, 200, 10),
        arrow("s", 2, 517, 110, 0),
        arrow("t", 1, 1, 120, 0),
        arrow("s", 2, 517, 205, 1),
        arrow("t", 8, 1, 220, 1),
    ]


def test_a_rocprof_trace_is_read_with_its_launches_and_its_device(tmp_path: Path) -> None:
    agents = {"Agent3.Node": "2", "Agent3.DeviceType": "GPU", "Agent3.MarketingName": "AMDInstinctMI210"}
    trace = open_trace(written(tmp_path, {"traceEvents": rocprof_events(), "otherData": agents}), cache=False)
    assert trace.source == "rocprof"
    assert trace_device(trace)[0] == "AMD Instinct MI210"
    gpu = trace.gpu.stored.sort("start_ns")
    assert gpu["kind"].cast(pl.String).to_list() == ["memcpy", "kernel"]
    assert gpu["device"].to_list() == [2, 2]
    assert gpu["copy_kind"].cast(pl.String).to_list() == ["HtoD", None]
    calls = trace.api.name[trace.gpu.api_id].texts.tolist()
    assert calls == ["hipMemcpyWithStream", "hipLaunchKernel"]


@pytest.mark.parametrize("ahead_ns", [0, 2_453_293_234_513_000])
def test_a_rocprof_trace_has_nanoseconds_devices_and_streams_in_its_arguments(ahead_ns: int, tmp_path: Path) -> None:
    """`ts` and `dur` are whole microseconds: 120 and 8 for a copy from 120,661 to 129,141 ns. Older files count `ts` from
    the start of the recording."""

    def exact(start_ns: int, end_ns: int, device: int, stream: int) -> dict[str, str]:
        times = {"BeginNs": str(start_ns + ahead_ns), "EndNs": str(end_ns + ahead_ns)}
        return {**times, "dev-id": str(device), "stream-id": str(stream)}

    events = rocprof_events()
    events[5]["args"] = exact(120_661, 129_141, 0, 3)
    events[6]["args"] = exact(220_500, 250_900, 2, 1)
    events.append(span("fill_kernel", "6", 1, 300, 5, **exact(300_000, 305_000, 0, 3)))
    events.append(span("odd_kernel", "8", 1, 400, 5, **exact(1, 2, 2, 1)))  # of another clock: not believed
    trace = open_trace(written(tmp_path, {"traceEvents": events}), cache=False)
    gpu = trace.gpu.stored.sort("start_ns")
    assert (gpu["end_ns"] - gpu["start_ns"]).to_list() == [8_480, 30_400, 5_000, 5_000]
    assert (gpu["start_ns"] - gpu["start_ns"][0]).to_list() == [0, 99_839, 179_339, 279_339]
    assert gpu["device"].to_list() == [0, 2, 0, 2]
    assert gpu["stream"].to_list() == [3, 1, 3, 1]
    assert trace.api.name[trace.gpu.api_id[:2]].texts.tolist() == ["hipMemcpyWithStream", "hipLaunchKernel"]


def test_events_without_a_process_are_foreign(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="foreign-trace"):
        open_trace(written(tmp_path, [{"ph": "X", "name": "a", "ts": 1, "dur": 2}]), cache=False)


ASCEND = [
    named("process", "Ascend Hardware", 10),
    named("process", "CANN", 11),
    span("MatMul", 10, 3, 5.5, 10, **{"Task Type": "AI_CORE"}),
    span("aclnnMatmul", 11, 1, 1, 2),
]
REFUSED: dict[str, tuple[list[Event], str, str]] = {
    "asynchronous": (
        [
            {"ph": phase, "cat": "resnet50", "name": "1", "id": "1", "ts": moment, "pid": 0}
            for phase, moment in (("b", 1.0), ("e", 2.0))
        ],
        "foreign-trace",
        '2 events in the category "resnet50" (2 of them asynchronous)',
    ),
    "begin and end": (
        [{"ph": phase, "name": "x", "ts": moment, "pid": 1, "tid": 1} for phase, moment in (("B", 1), ("E", 3))],
        "foreign-trace",
        "2 events (2 of them begin/end)",
    ),
    "another program, and events without a category": (
        [{**span("layout", 1, 1, 0, 5), "cat": "db"}, span("paint", 1, 1, 5, 5)],
        "foreign-trace",
        'another program: 2 events, 1 of them in the category "db"',
    ),
    "a browser": (
        [{**span("layout", 1, 1, 0, 5), "cat": "blink"}, {**span("paint", 1, 1, 5, 5), "cat": "gpu"}],
        "foreign-trace",
        '2 events in the categories "blink", "gpu"',
    ),
    "an Ascend NPU": (ASCEND, "other-device", "a trace of a Huawei Ascend NPU"),
    "a TPU": (
        [named("process", "/device:TPU:0", 3), span("fusion", 3, 1, 0, 5)],
        "other-device",
        "a trace of a TPU",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_foreign_traces_are_refused_with_what_they_hold(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events, code, words = REFUSED[case]
    path = written(tmp_path, events)
    assert run(["diagnose", str(path)]) == 1
    line = capsys.readouterr().err.strip()
    assert line.startswith(f"warpline: {code}: ")
    assert "\n" not in line
    assert words in line
    assert [check.name for check in examine_file(path).checks] == [code]


def test_cpu_ops_beside_an_npu_are_read_and_the_npu_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, [*ASCEND, op("aten::mm", 0, 4)])
    trace = open_trace(path, cache=False)
    codes = {entry.code: entry for entry in trace.health_entries}
    assert len(trace.ops) == 1
    assert "2 device events (Ascend Hardware, CANN) are not read" in codes["other-device"].message
    assert "no-gpu-work" not in codes
    assert "no-gpu-in-it" not in {check.name for check in examine_file(path).checks}


def test_recorded_accelerators_are_named_by_their_categories(tmp_path: Path) -> None:
    events = [op("aten::mm", 0, 4), {**span("run", 5, 1, 0, 5), "cat": "mtia_ccp_events"}]
    codes = {entry.code: entry for entry in open_trace(written(tmp_path, events), cache=False).health_entries}
    assert "MTIA, Meta's accelerator: its 1 device event (mtia_ccp_events)" in codes["other-device"].message
    assert "no-gpu-work" not in codes


def test_counters_instead_of_a_timeline_are_not_lost_kernels(tmp_path: Path) -> None:
    counted = {**span("scale_kernel", 0, 7, 10, 5), "cat": "cuda_profiler_range"}
    path = written(tmp_path, [call("cudaLaunchKernel", 0, 4, 1), counted])
    codes = {entry.code: entry for entry in open_trace(path, cache=False).health_entries}
    assert "1 kernel with counters" in codes["counters-only"].message
    assert "no-gpu-work" not in codes
    assert [check.name for check in examine_file(path).checks] == ["counters-only"]


def test_a_file_without_events_is_still_empty(tmp_path: Path) -> None:
    trace = open_trace(written(tmp_path, {"traceEvents": []}), cache=False)
    assert [entry.code for entry in trace.health_entries] == ["empty-trace"]


@pytest.mark.parametrize(
    "text",
    [
        {"schema": "1.1.1-chakra.0.0.4", "pid": 1, "nodes": []},
        {"schema": "1.0.1", "pid": 1, "nodes": [{"name": "[pytorch|profiler|execution_graph|process]"}]},
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_an_execution_trace_is_named(text: dict[str, Any], packed: bool, tmp_path: Path) -> None:
    path = tmp_path / ("et.json.gz" if packed else "et.json")
    path.write_bytes(gzip.compress(json.dumps(text).encode()) if packed else json.dumps(text).encode())
    assert detect(path) is EXECUTION_TRACE
    with pytest.raises(UnreadableFile, match=r"execution trace .* no times"):
        open_trace(path, cache=False)
    assert [check.name for check in examine_file(path).checks] == ["not-a-trace"]
