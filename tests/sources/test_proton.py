"""Profiles of Triton's Proton: Chrome traces of both kinds, and Hatchet files, which have sums and no timeline."""

from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from warpline.analyses.stats.proton import proton_kernels, proton_paths
from warpline.cli.main import run
from warpline.errors import UnreadableFile
from warpline.sources.detect import detect
from warpline.sources.kinds import PROTON_TREE
from warpline.sources.kineto.proton import joined_streams
from warpline.sources.proton_tree import read_proton_tree
from warpline.trace.open import open_trace
from warpline.trace.trace import Trace

Event = dict[str, Any]


def kernel(name: str, thread: int, start: float, length: float, **more: Any) -> Event:
    args = {"call_stack": ["ROOT", "step", name]}
    return {"name": name, "cat": "kernel", "ph": "X", "tid": thread, "ts": start, "dur": length, "args": args, **more}


def lane(thread: int, name: str) -> Event:
    return {"ph": "M", "pid": 0, "tid": thread, "name": "thread_name", "args": {"name": name}}


def scope(name: str, thread: int, start: float, length: float, category: str = "scope") -> Event:
    return {"name": name, "cat": category, "ph": "X", "pid": 0, "tid": thread, "ts": start, "dur": length}


def opened(folder: Path, events: list[Event], **header: Any) -> Trace:
    path = folder / "proton.chrome_trace"
    path.write_text(json.dumps({"displayTimeUnit": "us", **header, "traceEvents": events}))
    return open_trace(path, cache=False)


def test_an_older_trace_has_kernels_by_stream(tmp_path: Path) -> None:
    trace = opened(tmp_path, [kernel("a", 7, 0.0, 10.5), kernel("b", 9, 5.0, 10.001), kernel("a", 7, 20.0, 1.0)])
    assert trace.source == "proton"
    rows = trace.gpu.stored.select("name", "device", "stream", "start_ns", "end_ns")
    assert rows.cast({"name": pl.String}).rows() == [
        ("a", 0, 7, 0, 10_500),
        ("b", 0, 9, 5_000, 15_001),
        ("a", 0, 7, 20_000, 21_000),
    ]
    assert "kernels-only" in {entry.code for entry in trace.health_entries}


@pytest.mark.parametrize("piece_bytes", [64, 65, 100, 1 << 20])
def test_the_streams_of_an_older_trace_are_lines(piece_bytes: int, tmp_path: Path) -> None:
    streams = [
        [kernel("a", 7, 0.0, 10.0), kernel("a", 7, 20.0, 10.0)],
        [kernel("b", 9, 5.0, 10.0)],
        [kernel("c", 11, 6, 1)],
    ]
    objects = [{"displayTimeUnit": "us", "traceEvents": events} for events in streams]
    text = b"".join(json.dumps(one, separators=(",", ":")).encode() + b"\n" for one in objects)
    pieces = [text[at : at + piece_bytes] for at in range(0, len(text), piece_bytes)]
    joined = b"".join(joined_streams(pieces))
    assert len(joined) == len(text)
    assert [event["name"] for event in json.loads(joined)["traceEvents"]] == ["a", "a", "b", "c"]
    path = tmp_path / "proton.chrome_trace"
    path.write_bytes(text)
    assert sorted(open_trace(path, cache=False).gpu.stored["stream"]) == [7, 7, 9, 11]


def test_a_newer_trace_has_scopes_of_threads_and_of_graphs(tmp_path: Path) -> None:
    events = [
        lane(0, "CPU Thread 0"),
        lane(100_007, "Graph: Stream 7"),
        lane(200_007, "GPU Stream 7"),
        scope("step", 0, 0.0, 90.0),
        scope("forward: <flops, 2.000000>", 0, 5.0, 50.0, "metric"),
        scope("<captured_at>", 100_007, 20.0, 21.0),
        kernel("k", 200_007, 20.0, 10.0, pid=0),
        kernel("<metric>", 200_007, 31.0, 10.0, pid=0),
    ]
    trace = opened(tmp_path, events, baseTimeNanoseconds=1_700_000_000_000_000_000)
    assert trace.gpu.stored["stream"].to_list() == [7, 7]
    assert trace.facts["epoch_ns"] == "1700000000000000000"
    ranges = trace.ranges.stored.select("name", "style", "start_ns", "end_ns", "device", "stream")
    assert ranges.cast({"name": pl.String, "style": pl.String}).rows() == [
        ("step", "annotation", 0, 90_000, None, None),
        ("forward", "annotation", 5_000, 55_000, None, None),
        ("<captured_at>", "gpu", 20_000, 41_000, 0, 7),
    ]


def test_a_trace_of_the_inside_of_kernels_is_refused(tmp_path: Path) -> None:
    inside = {"name": "load", "cat": "matmul", "ph": "X", "pid": "core 0", "tid": "warp 0 (line 0)", "ts": 0, "dur": 1}
    with pytest.raises(UnreadableFile, match="inside of kernels") as error:
        opened(tmp_path, [inside])
    assert error.value.code == "other-format"


def test_a_trace_that_is_cut_short_is_read_up_to_there(tmp_path: Path) -> None:
    text = json.dumps({"displayTimeUnit": "us", "traceEvents": [kernel("a", 7, 10.0 * at, 5.0) for at in range(20)]})
    path = tmp_path / "proton.chrome_trace"
    path.write_text(text[: len(text) // 2])
    trace = open_trace(path, cache=False)
    assert trace.source == "proton"
    assert 0 < len(trace.gpu) < 20
    assert "truncated-file" in {entry.code for entry in trace.health_entries}


def node(name: str, *children: Any, **metrics: Any) -> dict[str, Any]:
    return {"frame": {"name": name, "type": "function"}, "metrics": metrics, "children": list(children)}


def timed(name: str, time_ns: int, count: int, *children: Any, **metrics: Any) -> dict[str, Any]:
    device = {"device_id": "0", "device_type": "CUDA"}
    return node(name, *children, **{"time (ns)": time_ns, "count": count, **device, **metrics})


TREE = [
    node(
        "ROOT",
        node("forward", timed("gemm", 600, 2), timed("gelu", 150, 1, bytes=300), flops16=3_000.0),
        node("backward", timed("gemm", 1_250, 4, flops16=5_000.0)),
        node("idle", **{"cpu_time (ns)": 99}),
        **{"time (ns)": 0, "count": 0},
    ),
    {"CUDA": {"0": {"arch": "90", "num_sms": 132}}},
]


@pytest.mark.parametrize("packed", [bytes, gzip.compress, lzma.compress])
def test_a_tree_is_recognised(packed: type[bytes], tmp_path: Path) -> None:
    path = tmp_path / "proton.hatchet"
    path.write_bytes(packed(b"\n" + json.dumps(TREE, indent=4).encode()))
    assert detect(path) is PROTON_TREE
    with pytest.raises(UnreadableFile, match="no timeline") as error:
        open_trace(path, cache=False)
    assert error.value.code == "not-a-trace"
    assert error.value.hint.startswith("warpline stats ")


def written(folder: Path, tree: Any) -> Path:
    path = folder / "proton.hatchet"
    path.write_text(json.dumps(tree))
    return path


def test_kernels_of_all_call_paths_are_summed(tmp_path: Path) -> None:
    frame = proton_kernels(read_proton_tree(written(tmp_path, TREE)))
    rows = frame.select("Time (%)", "Total Time (ns)", "Instances", "Avg (ns)", "Med (ns)", "Name").rows()
    assert rows == [(92.5, 1_850, 6, 308.3, None, "gemm"), (7.5, 150, 1, 150.0, None, "gelu")]


def test_bytes_that_are_no_text_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "proton.hatchet"
    path.write_bytes(json.dumps(TREE).encode().replace(b"gelu", b"gel\xe1"))
    with pytest.raises(UnreadableFile, match="damaged Proton profile") as error:
        read_proton_tree(path)
    assert error.value.code == "damaged-file"


def test_metrics_of_2024_begin_with_capital_letters(tmp_path: Path) -> None:
    old = node("matmul", bytes=50, **{"Time (ns)": 600, "Count": 2, "DeviceId": "0", "DeviceType": "CUDA"})
    (path,) = read_proton_tree(written(tmp_path, [node("ROOT", old, **{"Time (ns)": 0, "Count": 0}), {}]))
    assert (path.name, path.time_ns, path.count, path.bytes) == ("matmul", 600, 2, 50)


def test_a_call_path_has_the_time_and_work_below_it(tmp_path: Path) -> None:
    frame = proton_paths(read_proton_tree(written(tmp_path, TREE)))
    assert frame.select("Time (%)", "Total Time (ns)", "Instances", "TFLOP/s", "GB/s", "Call Path").rows() == [
        (62.5, 1_250, 4, 0.0, None, "backward"),
        (62.5, 1_250, 4, 0.0, None, "  gemm"),
        (37.5, 750, 3, 0.0, 0.4, "forward"),
        (30.0, 600, 2, None, None, "  gemm"),
        (7.5, 150, 1, None, 2.0, "  gelu"),
    ]


def test_stats_prints_the_call_paths(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, TREE)
    assert run(["stats", str(path), "--json"]) == 0
    reports = json.loads(capsys.readouterr().out)["reports"]
    assert [(name, len(rows)) for name, rows in reports.items()] == [("proton_sum", 5), ("cuda_gpu_kern_sum", 2)]
    assert run(["stats", str(path), "-r", "osrt_sum"]) == 1
    assert "no timeline" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (json.dumps(TREE)[:200], "damaged-file"),
        (json.dumps([node("ROOT", node("scope"))]), "empty-trace"),
        (json.dumps([{"children": [7, None, {"frame": 1, "metrics": 2}], "frame": {}, "metrics": {}}]), "empty-trace"),
        (json.dumps([node("ROOT", node("k", **{"time (ns)": "x", "count": -4}))]), "empty-trace"),
    ],
    ids=["cut", "no kernels", "no nodes", "no numbers"],
)
def test_a_damaged_tree_is_one_clear_line(text: str, code: str, tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "proton.hatchet"
    path.write_text(text)
    assert run(["stats", str(path)]) == 1
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith(f"warpline: {code}: ")
