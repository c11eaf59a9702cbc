"""Steps of a replay, by the way in which they were found."""

from __future__ import annotations

from pathlib import Path

import pytest
from kineto_files import Event, annotation, call, copy, frame, kernel, write

from warpline.fixes.registry import question_about
from warpline.replay import replay
from warpline.trace.open import open_trace

STEP = 1000.0
COUNT = 5


def loop(device_us: float) -> list[Event]:
    """A step of two launches on the CPU, each of so much work, with a wait at the end."""
    events: list[Event] = []
    for step in range(COUNT):
        begin = step * STEP
        for part in range(2):
            number = 1 + 3 * step + part
            events.append(call("cudaLaunchKernel", begin + 20 + 10 * part, 5, number))
            events.append(kernel(f"part {part}", begin + 40 + part * device_us, device_us, number))
        waited = 40 + 2 * device_us
        events.append(call("cudaStreamSynchronize", begin + 50, waited - 50, 3 + 3 * step))
    return events


def marks(found_by: str) -> list[Event]:
    """What tells the steps apart: nothing, where they are found by the work that repeats."""
    if found_by == "repetition":
        return []
    if found_by == "python":
        return [frame("train.py(7): step", step * STEP, STEP - 1, step + 1, None) for step in range(COUNT)]
    name = {"profiler_step": "ProfilerStep#{}", "ranges": "step {}"}[found_by]
    return [annotation(name.format(step), step * STEP, STEP - 1) for step in range(COUNT)]


@pytest.mark.parametrize("found_by", ["profiler_step", "ranges", "python", "repetition"])
def test_a_step_is_as_long_whichever_way_it_was_found(tmp_path: Path, found_by: str) -> None:
    trace = open_trace(write(tmp_path, loop(200) + marks(found_by)), cache=False)
    assert len(trace.all_steps) == COUNT
    answer = replay(trace)
    assert answer.error_pct < 1
    assert answer.measured_step_ns == pytest.approx(1_000_000, rel=0.05)


def test_a_step_found_on_the_device_does_not_begin_before_the_last_one_is_done(tmp_path: Path) -> None:
    """Each step begins with a copy of 300 µs, which a copy stream takes out of the way of 1 ms of kernels."""
    events: list[Event] = []
    for step in range(COUNT):
        begin, number = 2_000.0 * step, 1 + 4 * step
        events.append(call("cudaMemcpyAsync", begin, 5, number))
        events.append(copy("Memcpy HtoD (Pinned -> Device)", begin + 10, 300, number, 1 << 20))
        for part in range(2):
            events.append(call("cudaLaunchKernel", begin + 10 + 10 * part, 5, number + 1 + part))
            events.append(kernel(f"part {part}", begin + 320 + 501 * part, 500, number + 1 + part))
        events.append(call("cudaStreamSynchronize", begin + 40, 1_300, number + 3))
    trace = open_trace(write(tmp_path, events), cache=False)
    assert set(trace.all_steps.found_by) == {"repetition"}
    assert question_about(trace).ask("prefetch").new_step_ns.expected >= 1_000_000
