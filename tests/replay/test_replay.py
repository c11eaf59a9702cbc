"""Replays of hand-made traces whose step times were worked out on paper. Times are microseconds, as in the files."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import kineto_files as files
import numpy as np
import pytest
from kineto_files import AUTOGRAD, Event

from warpline.errors import WarplineError
from warpline.fixes.registry import question_about
from warpline.replay import Replay, replay
from warpline.replay.graph.model import EdgeKind, Graph, NodeKind
from warpline.replay.simulate import simulate
from warpline.trace.open import open_trace
from warpline.trace.trace import Trace

LAUNCH, LATENCY = 5, 2
"""Length of a launch call, and from its end to the start of its kernel on an empty stream."""


def opened(folder: Path, events: list[Event]) -> Trace:
    return open_trace(files.write(folder, events), cache=False)


def replayed(folder: Path, events: list[Event]) -> Replay:
    return replay(opened(folder, events))


def count(graph: Graph, edge: int) -> int:
    return int((graph.edge_kind == edge).sum())


def steps(*bounds: float) -> list[Event]:
    return [
        files.annotation(f"ProfilerStep#{number}", start, end - start)
        for number, (start, end) in enumerate(pairwise(bounds))
    ]


def launch(at: float, begin: float, length: float, number: int, **where: object) -> list[Event]:
    """A kernel launched at one moment and begun at another."""
    return [
        files.call("cudaLaunchKernel", at, LAUNCH, number),
        files.kernel("kernel", begin, length, number, **where),  # type: ignore[arg-type]
    ]


def dispatch_bound() -> list[Event]:
    """Three steps of 100 µs; in each, two kernels of 10 µs, each begun 2 µs after its call."""
    events = steps(0, 100, 200, 300)
    for step in range(3):
        for position, offset in enumerate((10, 60)):
            at = 100 * step + offset
            events += launch(at, at + LAUNCH + LATENCY, 10, 1 + 2 * step + position)
    return events


def gpu_bound(kernels: int = 40, length: float = 100, gap: float = 2) -> list[Event]:
    """Launches every 10 µs, kernels of 100 µs: the queue fills, and the device sets the pace."""
    events = steps(0, 10 * kernels / 2, 10 * kernels)
    begin = 10 + LAUNCH + LATENCY
    for number in range(kernels):
        events += launch(10 * number + (10 if number == 0 else 0), begin, length, number + 1)
        begin += length + gap
    return events


def test_a_dispatch_bound_step_takes_what_its_cpu_takes(tmp_path: Path) -> None:
    result = replayed(tmp_path, dispatch_bound())
    # Every step completes when the CPU leaves it: the second kernel ends at 77 of 100 µs.
    assert result.measured_ns == pytest.approx([100_000] * 3)
    assert result.replayed_ns == pytest.approx([100_000] * 3)


def test_faster_cpu_shortens_a_dispatch_bound_step(tmp_path: Path) -> None:
    result = replayed(tmp_path, dispatch_bound())
    graph = result.graph.copy()
    segments = graph.kind == NodeKind.SEGMENT
    graph.duration[segments] /= 2
    # Half of the 90 µs between calls, and all of the two calls of 5 µs.
    assert result.marks.lengths(graph, simulate(graph))[1:] == pytest.approx([55_000] * 2)


def test_a_gpu_bound_step_takes_what_its_kernels_and_gaps_take(tmp_path: Path) -> None:
    result = replayed(tmp_path, gpu_bound())
    # A step's 20 kernels complete 20 x 102 µs after those of the step before.
    assert result.measured_ns[1] == pytest.approx(20 * 102_000)
    assert result.replayed_ns == pytest.approx(result.measured_ns)


def test_faster_kernels_shorten_a_gpu_bound_step_until_the_cpu_is_the_limit(tmp_path: Path) -> None:
    result = replayed(tmp_path, gpu_bound())
    work = result.graph.kind == NodeKind.WORK
    graph = result.graph.copy()
    graph.duration[work] = 50_000
    assert result.marks.lengths(graph, simulate(graph))[1] == pytest.approx(20 * 52_000)
    graph.duration[work] = 1_000
    assert result.marks.lengths(graph, simulate(graph))[1] == pytest.approx(200_000, rel=0.02)


def test_a_synchronising_call_returns_when_the_work_is_done(tmp_path: Path) -> None:
    """Launch at 10, kernel from 17 to 117, synchronised from 20 to 120; then 30 µs of CPU: a step of 150 µs."""
    events = steps(0, 150, 300)
    for step in range(2):
        base = 150 * step
        events += launch(base + 10, base + 17, 100, 10 * step + 1)
        events.append(files.call("cudaDeviceSynchronize", base + 20, 100, 10 * step + 2))
    result = replayed(tmp_path, events)
    assert result.replayed_ns == pytest.approx([150_000, 150_000])
    graph = result.graph.copy()
    graph.duration[graph.kind == NodeKind.WORK] = 40_000
    # The kernel now ends at 57, the call returns 3 µs later, and 30 µs follow.
    assert result.marks.lengths(graph, simulate(graph)) == pytest.approx([90_000, 90_000])


def test_without_its_synchronisation_the_step_takes_the_cpu_alone(tmp_path: Path) -> None:
    events = steps(0, 150, 300)
    for step in range(2):
        base = 150 * step
        events += launch(base + 10, base + 17, 30, 10 * step + 1)
        events.append(files.call("cudaDeviceSynchronize", base + 20, 100, 10 * step + 2))
    result = replayed(tmp_path, events)
    # The call took 50 µs longer than the kernel and nothing else was recorded: that cost is its own, not the kernel's.
    assert result.replayed_ns == pytest.approx([150_000, 150_000])


def test_a_second_stream_waits_for_the_event_of_the_first(tmp_path: Path) -> None:
    """Stream 7: a kernel from 17 to 117. Stream 9 waits for it: its kernel begins 3 µs later, though launched at 40."""
    events = [
        *launch(10, 17, 100, 1, stream=7),
        files.call("cudaEventRecord", 20, 2, 2),
        files.call("cudaStreamWaitEvent", 25, 2, 3),
        *launch(40, 120, 50, 4, stream=9),
        *launch(60, 170, 10, 5, stream=9),
        files.call("cudaDeviceSynchronize", 80, 110, 6),
    ]
    result = replayed(tmp_path, events)
    assert count(result.graph, EdgeKind.EVENT) == 1
    assert result.schedule.span_ns == pytest.approx(180_000, abs=2_000)
    graph = result.graph.copy()
    first = np.flatnonzero(graph.kind == NodeKind.WORK)[0]
    graph.duration[first] = 50_000
    # Everything after the event comes 50 µs earlier.
    assert simulate(graph).span_ns == pytest.approx(result.schedule.span_ns - 50_000)


def test_an_unrecorded_dependency_is_inferred_from_the_times(tmp_path: Path) -> None:
    events = [
        *launch(10, 17, 200, 1, stream=7),
        *launch(40, 219, 50, 2, stream=9),
        files.call("cudaDeviceSynchronize", 60, 215, 3),
    ]
    assert count(replayed(tmp_path, events).graph, EdgeKind.INFERRED) == 1


def test_copies_on_their_own_stream_overlap_with_kernels(tmp_path: Path) -> None:
    """A kernel of 100 µs and a copy of 80 µs, launched one after the other, run side by side."""
    events = [
        *launch(10, 17, 100, 1, stream=7),
        files.call("cudaMemcpyAsync", 20, 5, 2),
        files.copy("Memcpy HtoD (Pinned -> Device)", 27, 80, 2, 1 << 22, stream=9),
        files.call("cudaDeviceSynchronize", 30, 90, 3),
    ]
    result = replayed(tmp_path, events)
    assert result.schedule.span_ns == pytest.approx(110_000, abs=1_000)
    graph = result.graph.copy()
    graph.duration[graph.kind == NodeKind.WORK] *= 2
    # The kernel, now 200 µs, still sets the pace: the copy ends at 187, the kernel at 217, and 3 µs follow.
    assert simulate(graph).span_ns == pytest.approx(210_000, abs=1_000)


def test_a_pageable_copy_holds_its_call(tmp_path: Path) -> None:
    """The call stages for 20 µs, the copy takes 100, and the call returns 5 µs later."""
    events = [
        files.call("cudaMemcpyAsync", 10, 125, 1),
        files.copy("Memcpy HtoD (Pageable -> Device)", 30, 100, 1, 1 << 22),
        *launch(140, 147, 10, 2),
    ]
    result = replayed(tmp_path, events)
    assert count(result.graph, EdgeKind.SYNC) == 1
    graph = result.graph.copy()
    copy = np.flatnonzero(graph.kind == NodeKind.WORK)[0]
    graph.duration[copy] = 40_000
    assert result.schedule.span_ns - simulate(graph).span_ns == pytest.approx(60_000)


def test_the_autograd_thread_begins_after_the_caller_and_the_caller_waits_for_it(tmp_path: Path) -> None:
    """Forward to 50; the backward op runs on its own thread from 60 to 160; the caller goes on at 170."""
    events = [
        files.op("aten::mm", 0, 50),
        *launch(10, 17, 5, 1),
        files.op("autograd::engine::evaluate_function: MmBackward0", 60, 100, thread=AUTOGRAD, **{"Fwd thread id": 1}),
        files.call("cudaLaunchKernel", 70, 5, 2, thread=AUTOGRAD),
        files.kernel("backward", 77, 5, 2),
        files.call("cudaLaunchKernel", 140, 5, 3, thread=AUTOGRAD),
        files.kernel("backward", 147, 5, 3),
        files.op("aten::add_", 170, 20),
        *launch(175, 182, 5, 4),
    ]
    result = replayed(tmp_path, events)
    assert count(result.graph, EdgeKind.HANDOFF) == 2
    assert result.schedule.span_ns == pytest.approx(190_000)
    graph = result.graph.copy()
    backward = (graph.lane == _thread_of(result, 70)) & (graph.kind == NodeKind.SEGMENT)
    graph.duration[backward] /= 2
    # 10 + 65 + 15 µs of segments within the backward pass shrink by half.
    assert result.schedule.span_ns - simulate(graph).span_ns == pytest.approx(45_000)


def _thread_of(result: Replay, at: float) -> int:
    graph = result.graph
    call = np.flatnonzero((graph.kind == NodeKind.CALL) & (graph.measured_start == at * 1000))
    return int(graph.lane[call[0]])


def test_work_of_one_graph_launch_follows_within_it(tmp_path: Path) -> None:
    events = [files.call("cudaGraphLaunch", 10, 20, 1)]
    events += [files.kernel("node", 35 + 6 * number, 5, 1, **{"graph id": 3}) for number in range(5)]
    events.append(files.call("cudaDeviceSynchronize", 30, 40, 2))
    result = replayed(tmp_path, events)
    assert count(result.graph, EdgeKind.LAUNCH) == 1
    assert count(result.graph, EdgeKind.STREAM) == 4
    assert result.schedule.span_ns == pytest.approx(60_000)


def test_work_of_a_graph_that_begins_while_the_last_blocks_drain_follows(tmp_path: Path) -> None:
    events = [files.call("cudaGraphLaunch", 10, 20, 1)]
    events += [files.kernel("node", 35 + 19.9 * number, 20, 1, **{"graph id": 3}) for number in range(5)]
    result = replayed(tmp_path, events)
    assert count(result.graph, EdgeKind.STREAM) == 4
    graph = result.graph.copy()
    graph.duration[graph.kind == NodeKind.WORK] *= 2
    # Each waits for the one before it; side by side, they would take 40 µs more in all.
    assert simulate(graph).span_ns - result.schedule.span_ns == pytest.approx(100_000, rel=0.01)


def test_a_graph_that_is_sent_in_parts_begins_while_its_launch_goes_on(tmp_path: Path) -> None:
    events = [files.call("cudaGraphLaunch", 10, 200, 1)]
    events += [files.kernel("node", 17 + 60 * number, 50, 1, **{"graph id": 3}) for number in range(5)]
    result = replayed(tmp_path, events)
    assert result.schedule.span_ns == pytest.approx(297_000)  # 7 µs after the call began, five of 50, four pauses of 10


def test_branches_of_a_graph_run_side_by_side(tmp_path: Path) -> None:
    events = [files.call("cudaGraphLaunch", 10, 20, 1)]
    events += [files.kernel(f"branch {number}", 35 + number, 20, 1, **{"graph id": 3}) for number in range(4)]
    result = replayed(tmp_path, events)
    graph = result.graph.copy()
    graph.duration[graph.kind == NodeKind.WORK] *= 2
    assert simulate(graph).span_ns - result.schedule.span_ns == pytest.approx(20_000, rel=0.1)


def test_work_without_a_launch_keeps_its_distance_and_is_counted(tmp_path: Path) -> None:
    events = [*launch(10, 17, 10, 1), files.kernel("orphan", 40, 10, 99), *launch(60, 67, 10, 2)]
    result = replayed(tmp_path, events)
    assert result.error_pct < 0.01


def test_a_long_delay_that_nothing_explains_is_kept(tmp_path: Path) -> None:
    events = [*launch(10, 17, 10, 1), *launch(30, 400, 10, 2), files.call("cudaDeviceSynchronize", 50, 370, 3)]
    result = replayed(tmp_path, events)
    # From the start of the first kernel at 17 µs to the end of the second at 410 µs.
    assert result.replayed_step_ns == pytest.approx(393_000)


def test_a_trace_without_gpu_work_cannot_be_replayed(tmp_path: Path) -> None:
    with pytest.raises(WarplineError, match="no-gpu-work"):
        replayed(tmp_path, [files.op("aten::add", 0, 10)])


def test_without_steps_the_whole_is_from_the_first_work_to_the_last(tmp_path: Path) -> None:
    # 900 µs of setup on the CPU come before the first kernel.
    events = [files.call("cudaGetDeviceCount", 5, 2, 50), *launch(905, 912, 10, 1), *launch(930, 937, 10, 2)]
    result = replayed(tmp_path, events)
    assert result.marks.count == 1
    assert result.measured_step_ns == pytest.approx(35_000)
    assert result.replayed_step_ns == pytest.approx(35_000, rel=0.01)


def test_a_device_is_not_busy_while_another_one_works(tmp_path: Path) -> None:
    """Two devices work in turn for half of each step: each is idle for the other half."""
    events = []
    for step in range(4):
        begin = 1000 * step
        events += [files.annotation(f"ProfilerStep#{step}", begin, 1000)]
        events += files.launched("k", begin + 10, begin + 20, 480, 10 + step)
        events += files.launched("k", begin + 500, begin + 520, 480, 20 + step, device=1)
        events += [files.call("cudaDeviceSynchronize", begin + 510, 490, 30 + step)]
    question = question_about(opened(tmp_path, events))
    assert 0.45 < question.bare.idle_share < 0.55


def test_steps_that_another_thread_launches_are_replayed(tmp_path: Path) -> None:
    events = []
    for step in range(4):
        events += [files.annotation(f"ProfilerStep#{step}", 1000 * step, 1000, thread=300)]
        events += files.launched("k", 1000 * step + 100, 1000 * step + 107, 50, 1 + step)
    events += files.launched("k", 4100, 4107, 50, 9)
    assert replayed(tmp_path, events).measured_ns.tolist() == [1_000_000] * 4


def test_a_length_that_few_steps_have_is_an_average(tmp_path: Path) -> None:
    """Every second step takes three times as long."""

    def made(*lengths: float) -> Replay:
        bounds = np.cumsum([0.0, *lengths]).tolist()
        launches = [files.launched("k", begin + 10, begin + 17, 50, 1 + at) for at, begin in enumerate(bounds[:-1])]
        return replayed(tmp_path, [*steps(*bounds), *(event for pair in launches for event in pair)])

    assert made(500, 1500, 500, 1500).is_average
    assert not made(500, 510, 1500, 505).is_average
