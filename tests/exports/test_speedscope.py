"""Flame graphs: a file as speedscope's schema wants it, whose times are the trace's, each counted once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kineto_files import AUTOGRAD, annotation, call, frame, kernel, op, write
from paths import DATA, DEMO

from warpline.analyses.stacks import Stacks, cpu_stacks, gpu_stacks
from warpline.cli.main import run
from warpline.exports.speedscope import speedscope
from warpline.trace.open import open_trace
from warpline.trace.trace import Trace

NSYS = DATA / "nsys" / "graph_node.sqlite.gz"


@pytest.fixture
def small(tmp_path: Path) -> Trace:
    """A frame with two ops of the same name; the second runs a frame of its own and launches two kernels."""
    events = [
        annotation("ProfilerStep#0", 0, 100),
        frame("train.py(3): step", 10, 80, 1, None),
        op("aten::mm", 20, 10, external=1),
        op("aten::mm", 40, 40, external=2),
        frame("fn.py(7): forward", 45, 20, 2, 1),
        call("cudaLaunchKernel", 50, 5, 1, external=2),
        call("cudaLaunchKernel", 70, 5, 2, external=2),
        kernel("gemm", 60, 30, 1),
        kernel("copy", 95, 10, 2),
        kernel("lost", 110, 7, 99),
        op("backward", 5, 6, thread=AUTOGRAD, external=3),
    ]
    return open_trace(write(tmp_path, events), cache=False)


def paths(stacks: Stacks) -> dict[tuple[str, ...], int]:
    found = {}
    for node, time_ns in enumerate(stacks.self_ns.tolist()):
        path, at = [], node
        while at != -1:
            path.append(stacks.frames[stacks.frame[at]])
            at = int(stacks.parent[at])
        if time_ns:
            found[tuple(reversed(path))] = time_ns
    return found


def test_each_moment_of_a_thread_belongs_to_its_innermost_event(small: Trace) -> None:
    main, autograd = cpu_stacks(small)
    step, op_path, inner = "train.py(3): step", "aten::mm", "fn.py(7): forward"
    # 80 µs of the frame: 50 in ops (10 + 40), of which 20 in the inner frame and 5 in each launch.
    assert paths(main) == {
        (step,): 30_000,
        (step, op_path): 10_000 + 40_000 - 20_000 - 5_000,
        (step, op_path, inner): 20_000 - 5_000,
        (step, op_path, inner, "cudaLaunchKernel"): 5_000,
        (step, op_path, "cudaLaunchKernel"): 5_000,
    }
    assert paths(autograd) == {("backward",): 6_000}


def test_gpu_time_hangs_on_the_stack_that_launched_it(small: Trace) -> None:
    found = gpu_stacks(small)
    assert found is not None
    step, launch = "train.py(3): step", "cudaLaunchKernel"
    assert paths(found) == {
        (step, "aten::mm", "fn.py(7): forward", launch, "gemm"): 30_000,
        (step, "aten::mm", launch, "copy"): 10_000,
        ("(no launch recorded)", "lost"): 7_000,
    }
    assert found.node_totals().max() == 40_000


@pytest.mark.parametrize("file", [DEMO, NSYS], ids=["kineto", "nsys"])
def test_no_gpu_time_is_lost(file: Path) -> None:
    trace = open_trace(file, cache=False)
    found = gpu_stacks(trace)
    assert found is not None
    assert found.total_ns == (trace.gpu.stored["end_ns"] - trace.gpu.stored["start_ns"]).sum()


def check_schema(file: dict[str, Any]) -> None:
    """What https://www.speedscope.app/file-format-schema.json requires of evented profiles."""
    assert file["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert set(file) <= {"$schema", "shared", "profiles", "name", "activeProfileIndex", "exporter"}
    frames = file["shared"]["frames"]
    for one in frames:
        assert isinstance(one["name"], str)
        assert set(one) <= {"name", "file", "line", "col"}
        assert isinstance(one.get("file", ""), str)
        assert isinstance(one.get("line", 0), int)
    assert 0 <= file["activeProfileIndex"] < len(file["profiles"])
    for profile in file["profiles"]:
        assert set(profile) == {"type", "name", "unit", "startValue", "endValue", "events"}
        assert profile["type"] == "evented"
        assert profile["unit"] == "nanoseconds"
        moments, open_frames = [event["at"] for event in profile["events"]], []
        assert moments == sorted(moments)
        assert [profile["startValue"], profile["endValue"]] == [moments[0], moments[-1]]
        for event in profile["events"]:
            assert 0 <= event["frame"] < len(frames)
            if event["type"] == "O":
                open_frames.append(event["frame"])
            else:
                assert event["frame"] == open_frames.pop()
        assert not open_frames


def test_the_file_follows_speedscopes_schema(small: Trace) -> None:
    gpu = gpu_stacks(small)
    assert gpu is not None
    file = json.loads(json.dumps(speedscope([gpu, *cpu_stacks(small)], "trace.json")))
    check_schema(file)
    assert [profile["name"] for profile in file["profiles"]] == ["GPU time", "CPU thread 100", "CPU thread 200"]
    assert [profile["endValue"] for profile in file["profiles"]] == [47_000, 80_000, 6_000]
    assert {"name": "step", "file": "train.py", "line": 3} in file["shared"]["frames"]


def test_the_longest_callee_comes_first_after_the_time_of_its_caller(small: Trace) -> None:
    gpu = gpu_stacks(small)
    assert gpu is not None
    file = speedscope([gpu], "trace.json")
    names = [one["name"] for one in file["shared"]["frames"]]
    events = [(event["type"], names[event["frame"]], event["at"]) for event in file["profiles"][0]["events"]]
    assert [event for event in events if event[1] in {"step", "gemm", "copy", "lost"}] == [
        ("O", "step", 0),
        ("O", "gemm", 0),
        ("C", "gemm", 30_000),
        ("O", "copy", 30_000),
        ("C", "copy", 40_000),
        ("C", "step", 40_000),
        ("O", "lost", 40_000),
        ("C", "lost", 47_000),
    ]


def test_the_size_grows_with_the_stacks_not_with_their_depth(tmp_path: Path) -> None:
    nested = [op("aten::mm", 10 + level, 1000 - 2 * level) for level in range(300)]
    trace = open_trace(write(tmp_path, [*nested, kernel("gemm", 60, 30, 1)]), cache=False)
    (thread,) = cpu_stacks(trace)
    assert len(speedscope([thread], "deep")["profiles"][0]["events"]) == 2 * 300


def test_the_command_writes_it(tmp_path: Path) -> None:
    file = tmp_path / "x.speedscope.json"
    assert run(["export", str(DEMO), "-o", str(file), "--steps", "1"]) == 0
    check_schema(json.loads(file.read_text()))
