"""Steps from profiler steps, from ranges, and from repetition."""

from __future__ import annotations

from pathlib import Path

import pytest
from kineto_files import annotation, launched, write

import warpline
from warpline.errors import UsageError
from warpline.trace.steps import StepChoice


def repeated(count: int, kernels: int = 4) -> list[dict[str, object]]:
    """`count` times: load, then layer after layer, 100 µs a kernel."""
    events = []
    for step in range(count):
        for position in range(kernels):
            moment = 1000 * step + 100 * position
            name = "load" if position == 0 else "layer"
            events += launched(name, moment, moment + 10, 50, 1 + step * kernels + position)
    return events


def test_profiler_steps_are_steps(tmp_path: Path) -> None:
    events = repeated(3) + [annotation(f"ProfilerStep#{7 + step}", 1000 * step, 900) for step in range(3)]
    trace = warpline.open(write(tmp_path, events))
    assert trace.steps["name"].to_list() == ["ProfilerStep#7", "ProfilerStep#8", "ProfilerStep#9"]
    assert trace.steps["found_by"].unique().to_list() == ["profiler_step"]
    assert trace.step_ns == 900_000


def test_profiler_steps_written_as_operators_in_2021_are_steps(tmp_path: Path) -> None:
    step = annotation("ProfilerStep#1", 0, 900) | {"cat": "Operator"}
    trace = warpline.open(write(tmp_path, [*repeated(1), step]))
    assert trace.steps["name"].to_list() == ["ProfilerStep#1"]
    assert len(trace.ops) == 0


def test_ranges_of_a_name_are_steps_when_asked_for(tmp_path: Path) -> None:
    events = repeated(3) + [annotation("batch", 1000 * step, 500) for step in range(3)]
    trace = warpline.open(write(tmp_path, events), step_range="batch")
    assert trace.steps["found_by"].unique().to_list() == ["range"]
    assert trace.step_ns == 500_000


def test_an_unknown_range_is_refused_with_those_there_are(tmp_path: Path) -> None:
    path = write(tmp_path, [*repeated(1), annotation("batch", 0, 500)])
    with pytest.raises(UsageError, match="batch"):
        warpline.open(path, step_range="bacth")


def test_repeating_kernels_are_steps_without_any_range(tmp_path: Path) -> None:
    trace = warpline.open(write(tmp_path, repeated(5)))
    assert trace.steps["found_by"].unique().to_list() == ["repetition"]
    assert len(trace.steps) == 5
    assert trace.step_ns == 1_000_000


def test_no_repetition_no_steps(tmp_path: Path) -> None:
    events = [
        event for number in range(9) for event in launched(f"k{number}", 100 * number, 100 * number + 10, 5, number + 1)
    ]
    assert len(warpline.open(write(tmp_path, events)).steps) == 0


@pytest.mark.parametrize(
    ("text", "window"),
    [("1:3", (1_000_000, 2_900_000)), ("2:", (2_000_000, 3_900_000)), ("-1", (3_000_000, 3_900_000))],
)
def test_steps_are_chosen_by_position(tmp_path: Path, text: str, window: tuple[int, int]) -> None:
    events = repeated(4) + [annotation(f"ProfilerStep#{step}", 1000 * step, 900) for step in range(4)]
    trace = warpline.open(write(tmp_path, events), steps=text)
    assert (trace.window.start_ns, trace.window.end_ns) == window


@pytest.mark.parametrize("text", ["", ":", "a:b", "1:2:3", "1.5", "9" * 40])
def test_nonsense_steps_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        StepChoice.parse(text)


def test_steps_beyond_the_end_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="5 steps"):
        warpline.open(write(tmp_path, repeated(5)), steps="7:9")
