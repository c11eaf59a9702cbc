"""Steps of a replay, by the way in which they were found."""

from __future__ import annotations

from pathlib import Path

import pytest
from kineto_files import Event, annotation, call, kernel, write

import warpline
from warpline.replay import replay

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


@pytest.mark.parametrize("name", ["ProfilerStep#{}", "step {}", None])
def test_a_step_is_as_long_whichever_way_it_was_found(tmp_path: Path, name: str | None) -> None:
    marks = [annotation(name.format(step), step * STEP, STEP - 1) for step in range(COUNT)] if name else []
    trace = warpline.open(write(tmp_path, loop(200) + marks), cache=False)
    assert len(trace.steps) == COUNT
    answer = replay(trace)
    assert answer.error_pct < 1
    assert answer.measured_step_ns == pytest.approx(1_000_000, rel=0.05)
