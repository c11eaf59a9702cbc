"""What holds for every replay: it scales, it never gets slower by doing less, and it is exact on consistent schedules."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kineto_files as files
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kineto_files import Event
from msgspec.structs import replace

from warpline.replay import Replay, replay
from warpline.replay.costs.device import device_costs
from warpline.replay.graph.model import Graph, NodeKind
from warpline.replay.graph_edit import GraphEdit
from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.simulate import _compiled, _interpreted, load_library, simulate
from warpline.trace.open import open_trace
from warpline.trace.trace import Trace

CALL_NS, OWN_NS = 4_000, 3_000
DEVICE = device_costs(None)
START_NS, GAP_NS = int(DEVICE.launch_to_start.expected), int(DEVICE.kernel_gap.expected)


@dataclass(frozen=True)
class Launch:
    before_ns: int
    stream: int
    length_ns: int


@dataclass(frozen=True)
class Wait:
    before_ns: int


Action = Launch | Wait
LENGTHS = st.integers(500, 200_000)
ACTIONS = st.one_of(
    st.builds(Launch, st.integers(0, 60_000), st.sampled_from([7, 9, 11]), LENGTHS),
    st.builds(Wait, st.integers(0, 60_000)),
)
PROGRAMS = st.lists(ACTIONS, min_size=1, max_size=40).filter(
    lambda actions: any(isinstance(a, Launch) for a in actions)
)


def performed(actions: list[Action]) -> list[Event]:
    """A tiny simulator that knows nothing of graphs: one thread, streams, a device that takes work in order."""
    clock, free, events = 1_000_000, dict.fromkeys((7, 9, 11), 0), []
    for number, action in enumerate(actions, 1):
        clock += action.before_ns
        if isinstance(action, Launch):
            events.append(files.call("cudaLaunchKernel", clock / 1000, CALL_NS / 1000, number))
            clock += CALL_NS
            begin = max(clock + START_NS, free[action.stream] + GAP_NS)
            free[action.stream] = begin + action.length_ns
            events.append(files.kernel("kernel", begin / 1000, action.length_ns / 1000, number, stream=action.stream))
        else:
            done = max(free.values())
            end = max(clock + OWN_NS, done + OWN_NS) if done else clock + OWN_NS
            events.append(files.call("cudaDeviceSynchronize", clock / 1000, (end - clock) / 1000, number))
            clock = end
    return events


def opened(actions: list[Action], folder: Path) -> Trace:
    return open_trace(files.write(folder, performed(actions)), cache=False)


@given(PROGRAMS)
@example([Launch(0, 7, 500), Wait(2200), Launch(0, 7, 500)])  # the kernel has just ended when the wait begins
@settings(max_examples=25)
def test_replay_of_a_consistent_schedule_is_exact(
    tmp_path_factory: pytest.TempPathFactory, actions: list[Action]
) -> None:
    result = replay(opened(actions, tmp_path_factory.mktemp("p")))
    graph = result.graph
    assert graph.dropped_edges == 0
    measured = graph.measured_start - graph.origin_ns
    work = graph.kind == NodeKind.WORK
    assert result.schedule.start[work] == pytest.approx(measured[work], abs=1.0)


@given(PROGRAMS, st.floats(0.1, 10), st.data())
@settings(max_examples=15)
def test_laws_of_every_schedule(
    tmp_path_factory: pytest.TempPathFactory, actions: list[Action], factor: float, data: st.DataObject
) -> None:
    trace = opened(actions, tmp_path_factory.mktemp("p"))
    found = replay(trace)
    scaling_every_duration_scales_the_result(found.graph, factor)
    shares = data.draw(st.lists(st.floats(0, 1), min_size=len(found.graph), max_size=len(found.graph)))
    shorter_work_never_delays_anything(found.graph, np.array(shares))
    work = np.flatnonzero(found.graph.kind == NodeKind.WORK)
    chosen = data.draw(st.lists(st.sampled_from(work.tolist()), unique=True))
    removing_work_never_lengthens_the_whole(trace, found, np.array(chosen, np.int64))
    the_compiled_pass_and_the_python_one_agree(found.graph)


def scaling_every_duration_scales_the_result(graph: Graph, factor: float) -> None:
    scaled = replace(graph, duration=graph.duration * factor, lag=graph.lag * factor)
    assert simulate(scaled).finish == pytest.approx(simulate(graph).finish * factor, rel=1e-9)


def shorter_work_never_delays_anything(graph: Graph, shares: np.ndarray[Any, Any]) -> None:
    shorter = replace(graph, duration=graph.duration * shares)
    assert (simulate(shorter).finish <= simulate(graph).finish + 1e-6).all()


def removing_work_never_lengthens_the_whole(trace: Trace, found: Replay, chosen: np.ndarray[Any, Any]) -> None:
    edit = GraphEdit(LabelledGraph(trace, found.graph, found.marks, found.costs), found.graph)
    edit.remove_work(chosen)
    assert simulate(edit.graph).span_ns <= found.schedule.span_ns + 1e-6
    the_compiled_pass_and_the_python_one_agree(edit.graph)


def the_compiled_pass_and_the_python_one_agree(graph: Graph) -> None:
    library = load_library()
    if library is not None:
        assert (_compiled(library, graph) == _interpreted(graph)).all()


def test_the_same_trace_gives_the_same_times_twice(tmp_path: Path) -> None:
    actions: list[Action] = [Launch(1_000, 7, 50_000), Launch(0, 9, 10_000), Wait(500), Launch(20, 7, 3_000)]
    first, second = (simulate(replay(opened(actions, tmp_path)).graph) for _ in range(2))
    assert (first.finish == second.finish).all()
