"""Source lines: of the trace's own frames, and borrowed from a second pass."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kineto_files import MAIN, Event, annotation, op
from kineto_files import frame as numbered_frame
from kineto_files import write as write_in

from warpline.analyses.cpu_time import cpu_time
from warpline.analyses.user_frames import Site, UserFrames, second_pass_health
from warpline.trace.open import open_trace
from warpline.trace.trace import Trace


def frame(name: str, start: float, length: float, *, thread: int = MAIN) -> Event:
    return numbered_frame(name, start, length, int(start) + 1, None, thread=thread)


def write(file: Path, events: list[Event]) -> None:
    write_in(file.parent, events, baseTimeNanoseconds=0).replace(file)


FRAMES = [
    frame("train.py(3): step", 10, 80),
    frame("<built-in method relu of type object at 0x1>", 20, 10),
    frame("helper.py(50): load", 40, 30),
    frame("<built-in function sleep>", 45, 20),
]
LINES = {20_000: 7, 40_000: 9, 45_000: 52}
"""The line of each call by its begin in nanoseconds: relu in line 7 of train.py, load in line 9, sleep in 52."""


def recorded(folder: Path, ops: list[Any], *, twin: list[Any] | None = None) -> Trace:
    """A trace without frames, and the second pass beside it with frames and lines."""
    write(folder / "trace.stacks.json", [annotation("ProfilerStep#0", 0, 100), *FRAMES, *(twin or TWIN)])
    write(folder / "trace.json", [annotation("ProfilerStep#0", 0, 60), *ops])
    lines = {"start_ns": list(LINES), "line": list(LINES.values())}
    with gzip.open(folder / "trace.look.json.gz", "wt") as file:
        json.dump({"schema": "warpline.look/1", "lines": lines}, file)
    return open_trace(folder / "trace.json", cache=False)


OPS = [op("aten::relu", 11, 2), op("aten::mul", 15, 2), op("aten::randn", 50, 2)]
TWIN = [op("aten::relu", 22, 5), op("aten::mul", 35, 2), op("aten::randn", 80, 2)]


def sites(trace: Trace) -> list[str | None]:
    frames = UserFrames(trace)
    return frames.sites(trace.ops.thread, trace.ops.start_ns).tolist()


def test_an_op_has_the_line_that_calls_it(tmp_path: Path) -> None:
    # mul is an operator: its line lies between those of the calls around it, 7 and 9. After load, the last is 9.
    assert sites(recorded(tmp_path, OPS)) == ["train.py(7): step", "train.py(~7): step", "train.py(~9): step"]


def test_a_moment_between_ops_is_the_same_share_of_the_time_between_them(tmp_path: Path) -> None:
    trace = recorded(tmp_path, OPS)
    frames, thread = UserFrames(trace), trace.ops.thread[:1]
    # From 17 to 50 here is from 37 to 80 there: a half is 58.5, in sleep, called by load in line 52.
    moment = np.array([int(trace.ops.end_ns[1]) + 16_500])
    assert frames.name(int(frames.innermost(thread, moment)[0])) == "<built-in function sleep>"
    assert frames.sites(thread, moment).tolist() == ["helper.py(52): load"]


def test_a_gap_of_a_program_without_gpu_work_has_the_line_of_its_middle(tmp_path: Path) -> None:
    found = cpu_time(recorded(tmp_path, OPS))
    assert found is not None
    gap = max((part for part in found.parts if part.kind == "gap"), key=lambda part: part.self_ns)
    assert (gap.name, gap.self_ns, gap.spot) == ("before aten::randn", 33_000, "helper.py:52")
    assert "33.0 µs (55.0 %) outside ops in helper.py:52;" in found.sentence


def test_loading_between_two_ops_has_the_line_of_its_middle(tmp_path: Path) -> None:
    loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    found = cpu_time(recorded(tmp_path, [annotation(loader, 14, 34), *OPS]))
    assert found is not None
    longest = max((part for part in found.parts if part.kind == "input"), key=lambda part: part.self_ns)
    # From the end of mul to that of the loader: 17 to 48, not where mul ended.
    assert (longest.name, longest.self_ns, longest.spot) == (loader, 31_000, "helper.py:52")


def test_ops_that_do_not_match_have_no_line_and_it_is_said(tmp_path: Path) -> None:
    trace = recorded(tmp_path, OPS, twin=[op("aten::relu", 22, 5), op("aten::add", 35, 2), op("aten::sub", 80, 2)])
    assert sites(trace)[0] == "train.py(7): step"
    frames = UserFrames(trace)
    assert frames.matched_share == pytest.approx(1 / 3)
    assert [entry.code for entry in second_pass_health(trace)] == ["second-look-differs"]


def test_a_damaged_look_is_said(tmp_path: Path) -> None:
    recorded(tmp_path, OPS)
    (tmp_path / "trace.look.json.gz").write_bytes(b"no gzip")
    trace = open_trace(tmp_path / "trace.json", cache=False)
    (entry,) = second_pass_health(trace)
    assert entry.code == "second-look-damaged"
    assert entry.message.startswith("There are no source lines: trace.look.json.gz cannot be read: ")


def test_a_trace_of_that_name_alone_is_somebody_elses(tmp_path: Path) -> None:
    recorded(tmp_path, OPS)
    (tmp_path / "trace.look.json.gz").unlink()
    trace = open_trace(tmp_path / "trace.json", cache=False)
    assert sites(trace) == [None, None, None]
    assert second_pass_health(trace) == []


def test_the_folder_of_a_run_is_its_trace(tmp_path: Path) -> None:
    recorded(tmp_path, OPS)
    (tmp_path / "manifest.json").write_text("{}")
    assert open_trace(tmp_path, cache=False).file.name == "trace.json"


def test_frames_of_the_trace_itself_have_the_first_lines_of_their_functions(tmp_path: Path) -> None:
    events = [frame("train.py(90): main", 0, 900), frame("train.py(3): step", 100, 80), op("aten::mm", 120, 5)]
    write(tmp_path / "own.json", events)
    trace = open_trace(tmp_path / "own.json", cache=False)
    assert sites(trace)[0] == "train.py(def 3): step"
    site = Site.parse("train.py(def 3): step")
    assert site is not None
    assert site.spot == "step, defined at train.py:3"


def test_frames_that_were_open_before_have_the_line_that_ran_then(tmp_path: Path) -> None:
    """`main` and `fit` run when the recording begins, in lines 90 and 20; `fit` is called again, from line 12 on."""
    begun = [frame("train.py(90): main", 0, 900), frame("train.py(20): fit", 0.002, 99)]
    write(
        tmp_path / "own.json",
        [*begun, op("a", 50, 2), op("b", 150, 2), frame("train.py(12): fit", 300, 99), op("c", 350, 2)],
    )
    found = sites(open_trace(tmp_path / "own.json", cache=False))
    assert found == ["train.py(def 12): fit", "train.py(open 90): main", "train.py(def 12): fit"]


def test_what_the_program_calls_through_a_wrapper_of_warpline_s_stays(tmp_path: Path) -> None:
    wrapper = frame("/opt/lib/warpline/capture/module_calls.py(60): call", 20, 60)
    inside = frame("model.py(5): forward", 30, 40)
    write(tmp_path / "own.json", [frame("train.py(90): main", 0, 200), wrapper, inside, op("aten::mm", 40, 5)])
    trace = open_trace(tmp_path / "own.json", cache=False)
    assert trace.python.name.texts.tolist() == ["train.py(90): main", "model.py(5): forward"]


@pytest.mark.parametrize(
    ("text", "spot", "brief"),
    [
        ("a/train.py(12): step", "a/train.py:12", "train.py:12"),
        ("a/train.py(~12): step", "step, near a/train.py:12", "step()"),
        ("a/train.py(def 7): step", "step, defined at a/train.py:7", "step()"),
        ("a/train.py(open 52): fit", "fit of a/train.py", "fit()"),
        ("a/train.py(open 52): <module>", "the top level of a/train.py", "train.py"),
        ("a/train.py(def 1): <module>", "the top level of a/train.py", "train.py"),
    ],
)
def test_a_line_is_said_as_what_it_is(text: str, spot: str, brief: str) -> None:
    site = Site.parse(text)
    assert site is not None
    assert (site.spot, site.brief) == (spot, brief)


def test_warplines_own_frames_and_threads_are_no_evidence(tmp_path: Path) -> None:
    own = "/opt/lib/warpline/capture"
    events = [
        *FRAMES,
        frame(f"{own}/session.py(60): boundary", 85, 4),
        frame("<built-in function sleep>", 86, 1),
        frame("threading.py(1): _bootstrap", 0, 100, thread=300),
        frame(f"{own}/watch.py(40): _run", 1, 98, thread=300),
        frame("<built-in function sleep>", 2, 90, thread=300),
    ]
    write(tmp_path / "own.json", events)
    trace = open_trace(tmp_path / "own.json", cache=False)
    assert len(trace.python) == len(FRAMES)
    assert trace.python.stored["thread"].n_unique() == 1


@pytest.mark.parametrize(
    "generated",
    [
        "/tmp/torchinductor_root/ov/cov463qhi2m2kw6ldmzzijfv5t3cjjklfci3qly3nsw6upcskct3.py(2533): call",
        "/home/me/.cache/vllm/torch_compile_cache/52a1/rank_0_0/backbone/computation_graph.py(7): forward",
        "<eval_with_key>.12(5): forward",
    ],
)
def test_a_generated_file_is_no_place(generated: str, tmp_path: Path) -> None:
    events = [
        numbered_frame("/tmp/train.py(3): step", 0, 100, 1, None),
        numbered_frame(generated, 10, 80, 2, 1),
        op("aten::mm", 20, 10),
    ]
    trace = open_trace(write_in(tmp_path, events), cache=False)
    sites = UserFrames(trace).sites(trace.ops.thread, trace.ops.start_ns)
    assert sites.tolist() == ["/tmp/train.py(open 3): step"]  # a line of step, not the one of the call
