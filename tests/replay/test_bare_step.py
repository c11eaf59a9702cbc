"""The step without a profiler: what recording costs, by the events in each node, and the idle time that it added."""

from __future__ import annotations

import json
from pathlib import Path

import kineto_files as files
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kineto_files import Event

from warpline.analyses.idle.gaps import CAUSES
from warpline.replay import replay
from warpline.replay.bare_step import CASES, EXPECTED_STEP, RecordedEvents, bare_idle_ns, recording_cost, timed_ns
from warpline.replay.costs.host import DEFAULT_KINETO, RecordingCosts
from warpline.replay.costs.own_costs import MIN_LEFT
from warpline.replay.graph.model import Graph, NodeKind
from warpline.trace.arrays import Floats
from warpline.trace.open import open_trace


def costs_of(folder: Path, events: list[Event], case: int = EXPECTED_STEP) -> tuple[Graph, Floats]:
    graph, counted = counted_in(folder, events)
    return graph, recording_cost(graph, counted, DEFAULT_KINETO, case)


def counted_in(folder: Path, events: list[Event]) -> tuple[Graph, RecordedEvents]:
    trace = open_trace(files.write(folder, events), cache=False)
    graph = replay(trace).graph
    return graph, RecordedEvents(trace, graph)


def ten_ops() -> list[Event]:
    """Ten launches of 20 µs, each in an op of 60 µs, each 100 µs, and one more call at the end; nothing is so short that
    recording is most of it."""
    events: list[Event] = [files.call("cudaEventRecord", 1_000, 20, 50)]
    for number in range(10):
        at = 100.0 * number
        events.append(files.op("aten::add", at, 60))
        events.append(files.call("cudaLaunchKernel", at + 20, 20, number + 1))
        events.append(files.kernel("kernel", at + 45, 4, number + 1))
    return events


def test_the_cost_is_the_number_of_events_times_their_costs(tmp_path: Path) -> None:
    graph, cost = costs_of(tmp_path, ten_ops())
    assert cost.sum() == pytest.approx(10 * DEFAULT_KINETO.op.expected + 11 * DEFAULT_KINETO.call.expected)
    assert (cost[graph.kind == NodeKind.WORK] == 0).all()


def test_frames_and_graph_nodes_have_costs_of_their_own(tmp_path: Path) -> None:
    """Companions ten ops: three frames of Python, and a graph launch of 50 µs with four nodes."""
    events = ten_ops() + [files.frame(f"model.py({line}): f", 70 + 2 * line, 1, line, None) for line in range(1, 4)]
    events.append(files.call("cudaGraphLaunch", 1_100, 50, 99))
    events += [files.kernel("node", 1_200 + 10 * node, 5, 99) for node in range(4)]
    _, cost = costs_of(tmp_path, events)
    kineto = DEFAULT_KINETO
    expected = 10 * kineto.op.expected + 12 * kineto.call.expected + 3 * kineto.frame.expected
    assert cost.sum() == pytest.approx(expected + 4 * kineto.graph_node.expected)


@pytest.mark.parametrize(
    ("name", "is_recording"),
    [
        ("Buffer Flush", True),
        ("Unknown", False),
        ("Driver JIT compiler (CUDA)", False),
        ("Lazy Function Loading", False),
    ],
)
def test_code_that_a_first_launch_loads_is_not_the_profilers(name: str, is_recording: bool, tmp_path: Path) -> None:
    """A launch of 100 ms, 90 of them overhead of that name: only a flush of the profiler's buffer goes without it."""
    overhead = {**files.op(name, 2_005, 90_000), "cat": "overhead"}
    events = [
        *ten_ops(),
        files.call("cudaLaunchKernel", 2_000, 100_000, 90),
        files.kernel("late", 102_005, 4, 90),
        overhead,
    ]
    _, cost = costs_of(tmp_path, events)
    assert (cost.sum() > 90_000_000) == is_recording
    assert (cost.sum() < 1_000_000) != is_recording


def test_every_node_keeps_some_of_its_time(tmp_path: Path) -> None:
    """Ops of 1 µs, one after the other, between launches of 1 µs: most of that is recording, but not all."""
    events: list[Event] = []
    for number in range(20):
        at = 4.0 * number
        events.append(files.op("aten::view", at, 1))
        events.append(files.call("cudaLaunchKernel", at + 2, 1, number + 1))
        events.append(files.kernel("kernel", at + 4, 1, number + 1))
    graph, cost = costs_of(tmp_path, events)
    assert (graph.duration - cost >= MIN_LEFT * graph.duration - 1e-6).all()


def test_the_lowest_step_has_the_highest_cost(tmp_path: Path) -> None:
    sums = [costs_of(tmp_path, ten_ops(), case)[1].sum() for case in CASES]
    assert sums == sorted(sums, reverse=True)
    assert sums[0] > sums[1] > sums[2]


def test_the_length_of_the_profilers_step_is_read_where_stacks_show_it(tmp_path: Path) -> None:
    marks = [files.annotation(f"ProfilerStep#{step}", 500 * step, 490) for step in range(2)]
    _, unseen = counted_in(tmp_path, ten_ops() + marks)
    assert unseen.steps.sum() == 2
    frames = [
        files.frame("torch/profiler/profiler.py(800): step", 480 + 500 * step, 20, step + 1, None) for step in (0,)
    ]
    graph, seen = counted_in(tmp_path, ten_ops() + marks + frames)
    assert seen.step_frames.sum() == 20_000
    free = RecordingCosts(**{name: getattr(DEFAULT_KINETO, name).times(0) for name in RecordingCosts.__slots__})
    assert recording_cost(graph, seen, free).sum() == pytest.approx(20_000)
    assert np.isfinite(recording_cost(graph, seen, DEFAULT_KINETO)).all()


def recorded(**causes: float) -> dict[str, float]:
    return {**dict.fromkeys(CAUSES, 0.0), **causes}


def test_recording_added_to_the_launches_and_not_to_the_data() -> None:
    # 31 ms with a profiler: 9 of loading, 14 + 2 of launches. Bare, the GPU is idle for 14 ms.
    idle = recorded(input=9.0, dispatch=14.0, launch_latency=2.0)
    bare = bare_idle_ns(idle, 14.0, loading_share=0.0)
    assert bare["input"] == pytest.approx(9.0)
    assert bare["dispatch"] == pytest.approx(5.0 * 14 / 16)
    assert bare["launch_latency"] == pytest.approx(5.0 * 2 / 16)


def test_python_stacks_make_loading_longer_too() -> None:
    # Of 40 ms that recording added, three quarters lie in frames of the loader.
    bare = bare_idle_ns(recorded(input=40.0, dispatch=20.0), 20.0, loading_share=0.75)
    assert (bare["input"], bare["dispatch"]) == (pytest.approx(10.0), pytest.approx(10.0))


def test_what_the_profiler_waits_for_is_none_of_the_program_s() -> None:
    assert bare_idle_ns(recorded(profiler=5.0, sync=3.0), 3.0, loading_share=0.0) == recorded(sync=3.0)


def test_a_longer_bare_step_keeps_the_shares() -> None:
    bare = bare_idle_ns(recorded(sync=1.0, dispatch=3.0), 8.0, loading_share=0.0)
    assert (bare["sync"], bare["dispatch"]) == (pytest.approx(2.0), pytest.approx(6.0))


@given(st.lists(st.floats(0, 1e9), min_size=len(CAUSES), max_size=len(CAUSES)), st.floats(0, 1e9), st.floats(0, 1))
def test_the_causes_sum_to_the_idle_time_and_none_is_negative(
    lengths: list[float], bare_ns: float, loading_share: float
) -> None:
    idle = dict(zip(CAUSES, lengths, strict=True))
    bare = bare_idle_ns(idle, bare_ns, loading_share)
    assert min(bare.values()) >= 0
    known = sum(lengths) - idle["profiler"]
    assert sum(bare.values()) <= bare_ns * (1 + 1e-6) + 1
    if known > bare_ns:
        assert sum(bare.values()) == pytest.approx(bare_ns, rel=1e-6, abs=1)


@pytest.mark.parametrize(
    ("laps", "uneven", "low", "expected", "high"),
    [
        ([20, 20, 20, 100] * 3, False, 20, 20, 25),  # the median, and no more than a quarter beside it
        ([20, 20, 20, 100] * 3, True, 32, 40, 50),  # the mean, of which the standard error is 10.4
        ([20, 20, 20, 100] * 2, True, None, None, None),
    ],
)
def test_of_uneven_steps_the_mean_is_the_bare_step(
    tmp_path: Path, laps: list[int], uneven: bool, low: float | None, expected: float | None, high: float | None
) -> None:
    times = {"median_ns": 20, "min_ns": 20, "max_ns": 100, "steps": len(laps), "laps_ns": laps}
    entry = {"file": "trace.json", "bare_step_ns": times}
    (tmp_path / "manifest.json").write_text(json.dumps({"schema": "warpline.run/1", "traces": [entry]}))
    found = timed_ns(tmp_path / "trace.json", uneven)
    assert (found and (found.low, found.expected, found.high)) == (expected and (low, expected, high))
