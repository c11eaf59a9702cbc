"""Steps of a replay, by the way in which they were found."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import polars as pl
import pytest
from kineto_files import Event, annotation, call, kernel, write
from paths import SUITES

from warpline.replay import replay
from warpline.trace.open import open_trace
from warpline.trace.trace import Trace

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
    trace = open_trace(write(tmp_path, loop(200) + marks), cache=False)
    assert len(trace.steps) == COUNT
    answer = replay(trace)
    assert answer.error_pct < 1
    assert answer.measured_step_ns == pytest.approx(1_000_000, rel=0.05)


def without_profiler_steps(recording: Path, folder: Path) -> Trace:
    """The recording as if the program had not told the profiler of its steps."""
    document = json.loads(gzip.decompress(recording.read_bytes()), strict=False)
    events = document["traceEvents"]
    document["traceEvents"] = [event for event in events if not str(event.get("name")).startswith("ProfilerStep")]
    path = folder / "trace.json"
    path.write_text(json.dumps(document))
    return open_trace(path, cache=False)


def spacing(steps: pl.DataFrame) -> float:
    """Mean time from one step's begin to the next's."""
    return float(steps["start_ns"][-1] - steps["start_ns"][0]) / (len(steps) - 1)


CASES = [
    "planted/small_mlp_training",
    "planted/token_decode",
    "planted/item_per_layer",
    "planted/pageable_batch",
    "planted/graphed_step",
    "held_out/adversarial_training",
    "held_out/progress_of_every_micro_batch",
    "field/gradients_clipped_one_by_one",
    "field/compiled_transformer_block",
]


@pytest.mark.parametrize("case", CASES)
def test_functions_are_the_steps_that_the_profiler_was_told_of(tmp_path: Path, case: str) -> None:
    recording = SUITES / f"{case}.json.gz"
    told, found = open_trace(recording, cache=False), without_profiler_steps(recording, tmp_path)
    assert found.steps["found_by"].unique().to_list() == ["python"]
    assert len(found.steps) == len(told.steps)
    assert spacing(found.steps) == pytest.approx(spacing(told.steps), rel=0.03)
    assert replay(found).measured_step_ns == pytest.approx(replay(told).measured_step_ns, rel=0.05)


UNDECIDABLE = {"field/compiled_transformer_block"}
"""Two equal halves a step, and no pause between steps that is longer than that between the halves."""


@pytest.mark.parametrize("case", [case for case in CASES if case not in UNDECIDABLE])
def test_repeating_work_has_the_steps_that_the_profiler_was_told_of(tmp_path: Path, case: str) -> None:
    recording = SUITES / f"{case}.plain.json.gz"
    told, found = open_trace(recording, cache=False), without_profiler_steps(recording, tmp_path)
    assert found.steps["found_by"].unique().to_list() == ["repetition"]
    assert abs(len(found.steps) - len(told.steps)) <= 1
    assert replay(found).measured_step_ns == pytest.approx(replay(told).measured_step_ns, rel=0.1)
    assert replay(found).error_pct < 2
