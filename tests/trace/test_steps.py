"""Steps from profiler steps, from loops of ranges, and from repetition."""

from __future__ import annotations

from pathlib import Path

import pytest
from kineto_files import AUTOGRAD, annotation, launched, write

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


@pytest.mark.parametrize("name", ["step {}", "iteration_{}", "train_step", "epoch 1, batch {}"])
def test_ranges_that_fill_the_loop_are_steps(tmp_path: Path, name: str) -> None:
    events = repeated(4) + [annotation(name.format(step), 1000 * step, 950) for step in range(4)]
    events += [annotation("forward", 1000 * step, 400) for step in range(4)]
    trace = warpline.open(write(tmp_path, events))
    assert trace.steps["name"].to_list() == [name.format(step) for step in range(4)]
    assert trace.steps["found_by"].unique().to_list() == ["range"]
    assert trace.steps["thread"].null_count() == 0
    assert trace.step_ns == 950_000


def test_of_nested_loops_the_outer_one_is_taken(tmp_path: Path) -> None:
    inner = [annotation(f"micro {part}", 500 * part, 480) for part in range(8)]
    halves = [annotation(f"half {part}", 500 * part, 490) for part in range(8)]
    outer = [annotation(f"step {step}", 1000 * step, 1000) for step in range(4)]
    assert len(warpline.open(write(tmp_path, repeated(4) + inner + halves + outer)).steps) == 4


@pytest.mark.parametrize(
    "ranges",
    [
        pytest.param([("step", 1000 * step, 600) for step in range(4)], id="time between them"),
        pytest.param([("step", 1000 * step, 1000) for step in (0, 1)], id="too few"),
        pytest.param([("step", 900 * step, 1000) for step in range(4)], id="overlapping"),
        pytest.param([("Optimizer.step#AdamW.step", 1000 * step, 1000) for step in range(4)], id="torch's own"),
        pytest.param([(f"layer {step}", 1000 * step, 1000) for step in range(4)], id="parts of a step"),
        pytest.param([("step", 250 * step, 250) for step in range(4)], id="a small part of the trace"),
        pytest.param([("step", 5000 + 250 * step, 250) for step in range(4)], id="nothing launched in them"),
    ],
)
def test_other_ranges_are_not_steps(tmp_path: Path, ranges: list[tuple[str, int, int]]) -> None:
    trace = warpline.open(write(tmp_path, repeated(4) + [annotation(*span) for span in ranges]))
    assert trace.steps["found_by"].unique().to_list() == ["repetition"]
    assert trace.steps["thread"].null_count() == len(trace.steps)


def test_ranges_of_a_thread_that_launches_nothing_are_not_steps(tmp_path: Path) -> None:
    loads = [annotation(f"load {step}", 1000 * step, 1000, thread=AUTOGRAD) for step in range(4)]
    assert warpline.open(write(tmp_path, repeated(4) + loads)).steps["found_by"][0] == "repetition"


def test_ranges_far_ahead_of_the_device_are_steps(tmp_path: Path) -> None:
    events = [annotation(f"step {step}", 100 * step, 99) for step in range(4)]
    for number in range(16):
        events += launched("load", 25 * number, 5000 + 1000 * number, 900, 1 + number)
    assert warpline.open(write(tmp_path, events)).steps["name"].to_list() == [f"step {step}" for step in range(4)]


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
