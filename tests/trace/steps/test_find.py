"""Steps from profiler steps, from loops of ranges, from calls of a function, and from repetition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kineto_files import AUTOGRAD, Event, annotation, call, copy, frame, kernel, launched, write

from warpline.errors import UsageError
from warpline.trace.open import open_trace
from warpline.trace.steps.choice import StepChoice


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
    trace = open_trace(write(tmp_path, events))
    assert trace.all_steps.stored["name"].to_list() == ["ProfilerStep#7", "ProfilerStep#8", "ProfilerStep#9"]
    assert trace.all_steps.stored["found_by"].unique().to_list() == ["profiler_step"]
    assert trace.step_ns == 900_000


def test_profiler_steps_written_as_operators_in_2021_are_steps(tmp_path: Path) -> None:
    step = annotation("ProfilerStep#1", 0, 900) | {"cat": "Operator"}
    trace = open_trace(write(tmp_path, [*repeated(1), step]))
    assert trace.all_steps.stored["name"].to_list() == ["ProfilerStep#1"]
    assert len(trace.ops) == 0


def test_ranges_of_a_name_are_steps_when_asked_for(tmp_path: Path) -> None:
    events = repeated(3) + [annotation("batch", 1000 * step, 500) for step in range(3)]
    trace = open_trace(write(tmp_path, events), step_range="batch")
    assert trace.all_steps.stored["found_by"].unique().to_list() == ["range"]
    assert trace.step_ns == 500_000


def test_an_unknown_range_is_refused_with_those_there_are(tmp_path: Path) -> None:
    path = write(tmp_path, [*repeated(1), annotation("batch", 0, 500)])
    with pytest.raises(UsageError, match="batch"):
        open_trace(path, step_range="bacth")


@pytest.mark.parametrize("name", ["step {}", "iteration_{}", "train_step", "epoch 1, batch {}"])
def test_ranges_that_fill_the_loop_are_steps(tmp_path: Path, name: str) -> None:
    events = repeated(4) + [annotation(name.format(step), 1000 * step, 950) for step in range(4)]
    events += [annotation("forward", 1000 * step, 400) for step in range(4)]
    trace = open_trace(write(tmp_path, events))
    assert trace.all_steps.stored["name"].to_list() == [name.format(step) for step in range(4)]
    assert trace.all_steps.stored["found_by"].unique().to_list() == ["range"]
    assert trace.all_steps.stored["thread"].null_count() == 0
    assert trace.step_ns == 950_000


def test_of_nested_loops_the_outer_one_is_taken(tmp_path: Path) -> None:
    inner = [annotation(f"micro {part}", 500 * part, 480) for part in range(8)]
    halves = [annotation(f"half {part}", 500 * part, 490) for part in range(8)]
    outer = [annotation(f"step {step}", 1000 * step, 1000) for step in range(4)]
    assert len(open_trace(write(tmp_path, repeated(4) + inner + halves + outer)).all_steps) == 4


def test_a_number_that_stays_is_a_label_of_one_section_and_not_the_count_of_a_loop(tmp_path: Path) -> None:
    """Section 0 runs five times, and then sections 1 and 2 once each."""
    sections = [annotation(f"section {max(0, turn - 4)}", 1000 * turn, 1000) for turn in range(7)]
    steps = open_trace(write(tmp_path, repeated(7) + sections)).all_steps
    assert steps.stored["name"].to_list() == ["section 0"] * 5


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
    trace = open_trace(write(tmp_path, repeated(4) + [annotation(*span) for span in ranges]))
    assert trace.all_steps.stored["found_by"].unique().to_list() == ["repetition"]
    assert trace.all_steps.stored["thread"].null_count() == len(trace.all_steps)


def test_ranges_of_a_thread_that_launches_nothing_are_not_steps(tmp_path: Path) -> None:
    loads = [annotation(f"load {step}", 1000 * step, 1000, thread=AUTOGRAD) for step in range(4)]
    assert open_trace(write(tmp_path, repeated(4) + loads)).all_steps.stored["found_by"][0] == "repetition"


def test_ranges_far_ahead_of_the_device_are_steps(tmp_path: Path) -> None:
    events = [annotation(f"step {step}", 100 * step, 99) for step in range(4)]
    for number in range(16):
        events += launched("load", 25 * number, 5000 + 1000 * number, 900, 1 + number)
    assert open_trace(write(tmp_path, events)).all_steps.stored["name"].to_list() == [
        f"step {step}" for step in range(4)
    ]


def test_repeating_kernels_are_steps_without_any_range(tmp_path: Path) -> None:
    trace = open_trace(write(tmp_path, repeated(5)))
    assert trace.all_steps.stored["found_by"].unique().to_list() == ["repetition"]
    assert len(trace.all_steps) == 5
    assert trace.step_ns == 1_000_000


def framed(*calls: tuple[str, float, float]) -> list[Event]:
    """A script from 0 to 10 ms that makes these calls."""
    script = frame("train.py(1): <module>", 0, 10_000, 1, None)
    return [script, *(frame(name, start, length, 2 + number, 1) for number, (name, start, length) in enumerate(calls))]


def in_a_loop(count: int, *calls: tuple[str, float, float]) -> list[tuple[str, float, float]]:
    return [(name, 1000 * step + start, length) for step in range(count) for name, start, length in calls]


def test_calls_of_a_function_are_steps(tmp_path: Path) -> None:
    trace = open_trace(write(tmp_path, repeated(4) + framed(*in_a_loop(4, ("train.py(12): step", 0, 950)))))
    assert trace.all_steps.stored["name"].to_list() == ["train.py(12): step"] * 4
    assert trace.all_steps.stored["found_by"].unique().to_list() == ["python"]
    assert trace.all_steps.stored["thread"].null_count() == 0
    assert trace.step_ns == 950_000


def test_a_loop_written_out_is_found_by_its_calls(tmp_path: Path) -> None:
    inner = [frame("nn.Module: Linear_0", 1000 * step + 110, 80, 90 + step, 2 + 3 * step + 1) for step in range(4)]
    body = (("data.py(3): load", 10, 80), ("nn.Module: Net_0", 95, 200), ("torch/optim/sgd.py(9): step", 295, 300))
    trace = open_trace(write(tmp_path, repeated(4) + framed(*in_a_loop(4, *body)) + inner))
    assert trace.all_steps.stored["found_by"].unique().to_list() == ["python"]
    assert trace.all_steps.stored["start_ns"].to_list() == [95_000 + 1_000_000 * step for step in range(4)]
    assert trace.all_steps.stored["name"].unique().to_list() == ["torch/optim/sgd.py(9): step"]


def test_an_evaluation_now_and_then_leaves_the_function_a_step(tmp_path: Path) -> None:
    calls = in_a_loop(6, ("train.py(12): step", 0, 960))
    calls[3:3] = [("train.py(30): evaluate", 2965, 30)]
    events = repeated(6) + framed(*calls) + launched("score", 2970, 2975, 5, 500)
    trace = open_trace(write(tmp_path, events))
    assert trace.all_steps.stored["name"].to_list() == ["train.py(12): step"] * 6


@pytest.mark.parametrize("name", ["torch/nn/functional.py(5): linear", "<built-in function linear>"])
def test_frames_of_torch_alone_are_not_steps(tmp_path: Path, name: str) -> None:
    trace = open_trace(write(tmp_path, repeated(4) + framed(*in_a_loop(4, (name, 0, 990)))))
    assert trace.all_steps.stored["found_by"].unique().to_list() == ["repetition"]


def in_order(names: str, *, pause_before: str = "", pause: float = 0) -> list[Event]:
    """A kernel for each letter, launched every 20 µs; before each capital the program pauses; `|` is a wait."""
    events: list[Event] = []
    now = 0.0
    for number, name in enumerate(names, 1):
        now += 20 + (pause if name in pause_before else 0)
        events += (
            [call("cudaDeviceSynchronize", now, 5, number)]
            if name == "|"
            else launched(name.lower(), now, now + 8, 9, number)
        )
    return events


def starts(folder: Path, names: str, **pauses: Any) -> list[int]:
    """At which kernel each step begins."""
    trace = open_trace(write(folder, in_order(names, **pauses)))
    assert set(trace.all_steps.stored["found_by"]) <= {"repetition"}
    return [int(trace.gpu.stored["start_ns"].search_sorted(start)) for start in trace.all_steps.stored["start_ns"]]


def test_a_step_is_not_one_of_its_layers(tmp_path: Path) -> None:
    assert starts(tmp_path, 5 * ("e" + 6 * "lmn" + "h")) == [0, 20, 40, 60, 80]


def test_steps_of_nothing_but_layers_are_the_layers(tmp_path: Path) -> None:
    assert starts(tmp_path, 4 * (6 * "lmn")) == list(range(0, 72, 3))


def test_unless_the_program_pauses_between_steps(tmp_path: Path) -> None:
    assert starts(tmp_path, 5 * ("L" + "mn" + 5 * "lmn"), pause_before="L", pause=30) == [0, 18, 36, 54, 72]


def test_pauses_a_little_longer_than_others_say_it_if_they_are_regular(tmp_path: Path) -> None:
    """5 µs more before every eighth layer of five steps, and once before another."""
    step = "Lmn" + 7 * "lmn"
    names = 3 * step + "Lmn" + "lmn" + "Lmn" + 5 * "lmn" + step
    assert starts(tmp_path, names, pause_before="L", pause=5) == [0, 24, 48, 72, 96]


@pytest.mark.parametrize("every", [2, 3])
def test_few_such_pauses_may_be_chance(tmp_path: Path, every: int) -> None:
    """Three or four of nine."""
    names = "lmn" + 4 * ("lmn" * (every - 1) + "Lmn") if every == 2 else 3 * ("lmn" * 2 + "Lmn")
    assert starts(tmp_path, names, pause_before="L", pause=5) == list(range(0, len(names), 3))


def test_pauses_that_are_not_regular_say_nothing(tmp_path: Path) -> None:
    names = "lmn" * 3 + "Lmn" + "lmn" * 5 + "Lmn" + "lmn" * 2 + "Lmn" + "lmn" * 8
    assert starts(tmp_path, names, pause_before="L", pause=30) == list(range(0, 63, 3))


def test_layers_of_one_pass_are_not_steps(tmp_path: Path) -> None:
    """An embedding, twelve layers and a head, launched in one go."""
    assert starts(tmp_path, "e" + 12 * "lmn" + "h") == []


def test_a_loop_after_a_pause_is_no_pass(tmp_path: Path) -> None:
    """What comes before the loop is not launched in one go with it."""
    assert starts(tmp_path, "e" + "L" + "mn" + 11 * "lmn" + "h", pause_before="L", pause=900) == list(range(1, 37, 3))


@pytest.mark.parametrize("name", ["execute_context_1(128)_generation_0(0)", "step[EXTEND bs=15 toks=15360]"])
def test_one_range_of_an_engine_is_a_step_and_its_layers_are_not(tmp_path: Path, name: str) -> None:
    trace = open_trace(write(tmp_path, [annotation(name, 0, 800), *in_order(12 * "lmn")]))
    assert trace.all_steps.stored["name"].to_list() == [name]
    assert trace.all_steps.stored["found_by"].to_list() == ["range"]


def test_prefills_and_decodes_of_an_engine_are_its_steps_whatever_lies_between(tmp_path: Path) -> None:
    names = ["step[EXTEND bs=1 toks=512]", *(f"step[DECODE bs={batch}]" for batch in (1, 2, 2))]
    marks = [annotation(name, 1000 * step, 500) for step, name in enumerate(names)]
    inner = [annotation("step[DRAFT bs=1]", 1000, 100)]
    assert open_trace(write(tmp_path, repeated(4) + marks + inner)).all_steps.stored["name"].to_list() == names


def test_two_ranges_named_as_steps_that_hold_the_work_are_steps(tmp_path: Path) -> None:
    marks = [annotation(f"iteration {step}", 1000 * step, 995) for step in range(2)]
    assert len(open_trace(write(tmp_path, repeated(2) + marks)).all_steps) == 2


def test_an_epoch_is_not_a_step(tmp_path: Path) -> None:
    epochs = [annotation(f"epoch {epoch}", 2000 * epoch, 2000) for epoch in range(3)]
    batches = [annotation(f"batch {step}", 1000 * step, 990) for step in range(6)]
    assert len(open_trace(write(tmp_path, repeated(6) + epochs + batches)).all_steps) == 6


def test_profiler_steps_without_gpu_work_at_either_end_are_no_steps(tmp_path: Path) -> None:
    """The recording begins on the device in step 1, and ends in step 4."""
    marks = [annotation(f"ProfilerStep#{step}", 1000 * step, 900) for step in range(-1, 2)]
    marks.append(annotation("ProfilerStep#9", 1950, 5))
    assert open_trace(write(tmp_path, repeated(2) + marks)).all_steps.stored["name"].to_list() == [
        "ProfilerStep#0",
        "ProfilerStep#1",
    ]


def test_a_wait_in_every_step_tells_steps_from_layers(tmp_path: Path) -> None:
    assert starts(tmp_path, 4 * (6 * "lm" + "|")) == [0, 12, 24, 36]


def test_what_comes_before_the_loop_is_no_step(tmp_path: Path) -> None:
    assert starts(tmp_path, "uvwxyz" + 5 * "abcdef") == [6, 12, 18, 24, 30]


def test_a_step_with_one_kernel_more_is_a_step(tmp_path: Path) -> None:
    assert starts(tmp_path, 2 * "abcdef" + "abcdefg" + 5 * "abcdef") == [0, 6, 12, 19, 25, 31, 37, 43]


def test_trials_of_one_kernel_are_not_steps(tmp_path: Path) -> None:
    assert starts(tmp_path, 40 * "t" + "abcdefghijklmno") == []


def test_kernels_of_another_size_are_other_kernels(tmp_path: Path) -> None:
    events: list[Event] = []
    for number in range(20):
        size = 64 if number % 4 == 0 else 8
        events += launched("gemm", 20 * number, 20 * number + 8, 9, number + 1, grid=[size, 1, 1])
    assert len(open_trace(write(tmp_path, events)).all_steps) == 5


def test_copies_count(tmp_path: Path) -> None:
    events: list[Event] = []
    for step in range(4):
        number, now = 100 * step + 1, 200 * step
        events += [
            call("cudaMemcpyAsync", now, 5, number),
            copy("Memcpy HtoD (Pinned -> Device)", now + 6, 9, number, 64),
        ]
        for part in range(1, 6):
            events += launched("gemm", now + 20 * part, now + 20 * part + 8, 9, number + part)
    assert len(open_trace(write(tmp_path, events)).all_steps) == 4


def test_no_repetition_no_steps(tmp_path: Path) -> None:
    events = [
        event for number in range(9) for event in launched(f"k{number}", 100 * number, 100 * number + 10, 5, number + 1)
    ]
    assert len(open_trace(write(tmp_path, events)).all_steps) == 0


@pytest.mark.parametrize(
    ("text", "window"),
    [("1:3", (1_000_000, 2_900_000)), ("2:", (2_000_000, 3_900_000)), ("-1", (3_000_000, 3_900_000))],
)
def test_steps_are_chosen_by_position(tmp_path: Path, text: str, window: tuple[int, int]) -> None:
    events = repeated(4) + [annotation(f"ProfilerStep#{step}", 1000 * step, 900) for step in range(4)]
    trace = open_trace(write(tmp_path, events), steps=text)
    assert (trace.window.start_ns, trace.window.end_ns) == window


@pytest.mark.parametrize("text", ["", ":", "a:b", "1:2:3", "1.5", "9" * 40])
def test_nonsense_steps_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        StepChoice.parse(text)


def test_steps_beyond_the_end_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="5 steps"):
        open_trace(write(tmp_path, repeated(5)), steps="7:9")


def test_work_that_was_launched_before_the_steps_ends_no_step(tmp_path: Path) -> None:
    """The loop runs ahead: its stream still has 3 ms of work from before the recording when a copy of the first step
    runs on another stream. A stream runs in the order of its launches, so each step takes 1 ms."""
    events: list[Event] = [kernel("layer", 100 + 1000 * turn, 1000, 900 + turn) for turn in range(3)]
    for step in range(3):
        events += [annotation(f"ProfilerStep#{step}", 100 + 200 * step, 200)]
        events += launched("layer", 110 + 200 * step, 3100 + 1000 * step, 1000, 10 + step)
        events += launched("side", 120 + 200 * step, 130 + 200 * step, 20, 20 + step, stream=20)
    begins, ends = open_trace(write(tmp_path, events), cache=False).step_spans
    assert ((ends - begins) == 1_000_000).all()


@pytest.mark.parametrize(
    "name", ["Optimizer.step#SGD.step", "Optimizer.zero_grad#SGD.zero_grad", "enumerate(DataLoader)#It.__next__"]
)
def test_ranges_of_torch_written_as_operators_in_2021_are_ranges(tmp_path: Path, name: str) -> None:
    trace = open_trace(write(tmp_path, [*repeated(1), annotation(name, 0, 900) | {"cat": "Operator"}]))
    assert trace.ranges.stored["name"].cast(str).to_list() == [name]
    assert len(trace.ops) == 0


def test_copies_that_repeat_beside_a_kernel_are_no_steps(tmp_path: Path) -> None:
    """A kernel, and then its results, read one after the other."""
    events = launched("scale", 0, 10, 50, 1)
    for number in range(2, 9):
        events.append(call("cudaMemcpy", 100 * number, 20, number))
        events.append(copy("Memcpy DtoH (Device -> Pageable)", 100 * number + 5, 5, number, 8))
    assert len(open_trace(write(tmp_path, events), cache=False).all_steps) == 0


def test_parts_in_the_same_order_are_steps_without_a_range_around_them(tmp_path: Path) -> None:
    """Every kernel is another one, as every graph is; the first part of the first round is called twice."""
    events: list[Event] = [annotation("norm", -200, 100)]
    for at in range(12):
        events += launched(f"kernel_{at}_of_its_own", 100 * at + 5, 100 * at + 10, 50, 1 + at)
        events.append(annotation(("norm", "matmul", "add")[at % 3], 100 * at, 90))
    steps = open_trace(write(tmp_path, events)).all_steps.stored
    assert steps["found_by"].to_list() == ["range"] * 4
    assert steps["name"].to_list() == ["norm"] * 4
