"""What repeats is a step only if it is most of what the recording is about; else the whole recording is meant."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from kineto_files import Event, annotation, call, copy, frame, kernel, launched, write
from nsys_files import GLOBAL_PID, Export

from warpline.trace.open import open_trace
from warpline.trace.trace import Trace

LAYER = ("first", "second", "third")


def layers(count: int, begin: float = 0.0, length: float = 50.0, number: int = 1) -> list[Event]:
    """Layers of three kernels, one every 100 µs."""
    events = []
    for position in range(3 * count):
        moment = begin + 100 * position
        events += launched(LAYER[position % 3], moment, moment + 10, length, number + position)
    return events


def uploaded(begin: float, length: float, number: int) -> list[Event]:
    return [
        call("cudaMemcpyAsync", begin, 5, number),
        copy("Memcpy HtoD (Pageable -> Device)", begin + 5, length, number, 1 << 20),
    ]


def opened(folder: Path, events: list[Event]) -> Trace:
    return open_trace(write(folder, events), cache=False)


def test_repeats_that_hold_the_gpu_time_are_steps(tmp_path: Path) -> None:
    trace = opened(tmp_path, layers(6))
    assert trace.all_steps.stored["found_by"].unique().to_list() == ["repetition"]


def test_copies_beside_one_long_kernel_are_not(tmp_path: Path) -> None:
    copies = [event for turn in range(20) for event in uploaded(100.0 * turn, 10, 100 + turn)]
    trace = opened(tmp_path, copies + launched("simulate", 2_500, 2_510, 50_000, 99))
    assert not len(trace.all_steps)
    assert trace.step_ns is None


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("__pgi_uacc_cuda_fill_42_gpu", 0),
        ("void vectorized_elementwise_kernel<4, FillFunctor<float>>", 0),
        ("void masked_fill_kernel<float>", 20),
        ("scale", 20),
    ],
)
def test_memory_that_is_filled_piece_by_piece_is_no_loop_of_steps(name: str, steps: int, tmp_path: Path) -> None:
    """An OpenACC program copies a pointer and fills what it points to, 20 times."""
    events = [
        event
        for turn in range(20)
        for event in uploaded(100.0 * turn, 10, 100 + turn)
        + launched(name, 100.0 * turn + 50, 100.0 * turn + 60, 5, 200 + turn)
    ]
    assert len(opened(tmp_path, events).all_steps) == steps


def test_layers_of_one_pass_with_as_much_work_around_them_are_not(tmp_path: Path) -> None:
    around = launched("embed", 0, 10, 600, 900) + launched("head", 3_000, 3_010, 600, 901)
    assert not len(opened(tmp_path, around + layers(6, begin=1_000)).all_steps)


def test_a_model_that_is_loaded_before_the_first_kernel_is_not_held_against_the_steps(tmp_path: Path) -> None:
    """The copies take five times as long as all kernels, once."""
    trace = opened(tmp_path, uploaded(0, 2_000, 800) + uploaded(2_100, 2_500, 801) + layers(6, begin=5_000))
    assert len(trace.all_steps) == 6


def test_results_that_are_copied_at_the_end_are(tmp_path: Path) -> None:
    back = [call("cudaMemcpy", 3_000, 5_000, 800), copy("Memcpy DtoH (Device -> Pageable)", 3_010, 4_900, 800, 1 << 20)]
    assert not len(opened(tmp_path, layers(6) + back).all_steps)


def test_tokens_after_a_long_prompt_span_the_recording_and_are_steps(tmp_path: Path) -> None:
    """The prompt takes 1.2 times the GPU time of the tokens, and a quarter of the recording."""
    tokens = layers(10, begin=1_200, length=30)
    assert len(opened(tmp_path, launched("prefill", 0, 10, 1_080, 900) + tokens).all_steps) == 10


def test_repeats_with_very_different_work_are_not_alike(tmp_path: Path) -> None:
    events = [event for turn in range(6) for event in layers(1, 1_000.0 * turn, (5, 300)[turn % 2], 1 + 3 * turn)]
    assert not len(opened(tmp_path, events).all_steps)


@pytest.mark.parametrize(("name", "steps"), [("nn.Module: Model_0", 0), ("train.py(1): train", 6)])
def test_repeats_within_one_call_of_a_module_are_its_layers(tmp_path: Path, name: str, steps: int) -> None:
    around = frame(name, -10, 2_000, 1, None)
    assert len(opened(tmp_path, [around, *layers(6)]).all_steps) == steps


@pytest.mark.parametrize(("instances", "steps"), [(6, 0), (1, 6)])
def test_layers_are_different_modules_and_steps_the_same_ones_again(tmp_path: Path, instances: int, steps: int) -> None:
    """Each repeat calls a module: another one each time, or the same one, all of them within one call of a sampler."""
    calls = [frame(f"nn.Module: Layer_{turn % instances}", 300 * turn - 5, 290, 2 + turn, 1) for turn in range(6)]
    assert (
        len(opened(tmp_path, [frame("nn.Module: Sampler_0", -10, 2_000, 1, None), *calls, *layers(6)]).all_steps)
        == steps
    )


def test_what_comes_twice_in_a_corner_of_the_recording_is_no_step(tmp_path: Path) -> None:
    """Nine kernels twice in 2 ms, at the end of 20 ms with next to no GPU time."""
    twice = [
        event
        for number in range(18)
        for event in launched(f"k{number % 9}", 20_000 + 100 * number, 20_010 + 100 * number, 80, 1 + number)
    ]
    assert not len(opened(tmp_path, launched("first", 0, 10, 5, 99) + twice).all_steps)
    assert len(opened(tmp_path, twice).all_steps) == 2


def test_two_repeats_of_which_one_takes_far_longer_are_not_steps(tmp_path: Path) -> None:
    """Nine different kernels twice: a second time at once, or after a second."""

    def run(begin: float, number: int, pause: float) -> list[Event]:
        return [
            event
            for position in range(9)
            for event in launched(
                f"k{position}", begin + pause * position, begin + pause * position + 10, 5, number + position
            )
        ]

    assert len(opened(tmp_path, run(0, 1, 100) + run(1_000, 20, 100)).all_steps) == 2
    assert not len(opened(tmp_path, run(0, 1, 2_000) + run(20_000, 20, 100)).all_steps)


def test_training_steps_end_with_the_optimizer_s_where_nothing_repeats(tmp_path: Path) -> None:
    """Loading, then two steps with other kernels, the first of which begins with the first kernel."""
    events = uploaded(0, 5_000, 900)
    for step in range(2):
        for position in range(4):
            moment = 6_000 + 1_000 * step + 100 * position
            events += launched(f"kernel {step} {position}", moment, moment + 10, 50, 1 + 10 * step + position)
        events.append(annotation("Optimizer.step#AdamW.step", 6_300 + 1_000 * step, 200))
    steps = opened(tmp_path, events).all_steps
    assert steps.stored.select("found_by", "start_ns", "end_ns").rows() == [
        ("optimizer", 6_000_000, 6_500_000),
        ("optimizer", 6_500_000, 7_500_000),
    ]


def test_what_comes_before_the_optimizer_s_first_step_may_be_no_step(tmp_path: Path) -> None:
    """Three times as many kernels before the first end as in the step after it."""
    events = []
    for position in range(16):
        moment = 100 * position
        events += launched(f"kernel {position}", moment, moment + 10, 50, 1 + position)
    events += [annotation("Optimizer.step#SGD.step", 1_150, 45), annotation("Optimizer.step#SGD.step", 1_550, 45)]
    steps = opened(tmp_path, events).all_steps
    assert steps.stored.select("found_by", "start_ns", "end_ns").rows() == [("optimizer", 1_195_000, 1_595_000)]


def test_a_step_that_only_launches_is_as_long_as_its_work(tmp_path: Path) -> None:
    """Ranges of 100 µs, each of which launches a kernel of 1 ms: the loop is bound by the device."""
    events = []
    for step in range(4):
        events += [
            annotation(f"ProfilerStep#{step}", 100 * step, 100),
            call("cudaLaunchKernel", 100 * step + 10, 5, step + 1),
        ]
        events.append(kernel("long", 20 + 1_000 * step, 1_000, step + 1))
    trace = opened(tmp_path, events)
    starts, ends = trace.step_spans
    assert (starts // 1_000).tolist() == [0, 1_020, 2_020, 3_020]
    assert (ends // 1_000).tolist() == [1_020, 2_020, 3_020, 4_020]
    assert trace.step_ns == 1_000_000


def test_work_from_before_the_recording_is_no_part_of_the_first_step(tmp_path: Path) -> None:
    """The device is 3 ms behind: a kernel that was launched before the recording runs after the last step's range."""
    events = [kernel("before", 500, 2_500, 999)]
    for step in range(4):
        events += [
            annotation(f"ProfilerStep#{step}", 100 * step, 100),
            call("cudaLaunchKernel", 100 * step + 10, 5, step + 1),
        ]
        events.append(kernel("long", 3_000 + 1_000 * step, 1_000, step + 1))
    starts, ends = opened(tmp_path, events).step_spans
    assert ((ends - starts) // 1_000).tolist() == [1_000] * 4


@pytest.mark.parametrize("launches", [1, 3])
def test_layers_of_a_graph_are_not_steps(tmp_path: Path, launches: int) -> None:
    """One launch of the graph runs all six layers."""
    events: list[Event] = []
    for turn in range(launches):
        events += [call("cudaGraphLaunch", 2000.0 * turn, 5, 1 + turn)]
        events += [kernel(LAYER[at % 3], 2000.0 * turn + 10 + 100 * at, 90, 1 + turn) for at in range(18)]
    assert not len(opened(tmp_path, events).all_steps)


def test_moves_of_unified_memory_are_no_steps(tmp_path: Path) -> None:
    """The CPU touches pages 400 times, once every millisecond and more or less of them, around a single kernel: the
    driver moves them, and no loop does."""
    place = {"deviceId": 0, "contextId": 1, "streamId": 7, "globalPid": GLOBAL_PID}
    export = Export().kernel(20_500_000, 20_600_000)
    sizes = Random(1)
    for page in range(400):
        start, size = 1_000_000 * page, 4096 * sizes.randrange(1, 500)
        export.add("CUPTI_ACTIVITY_KIND_MEMCPY", start=start, end=start + 9_000, copyKind=12, bytes=size, **place)
    trace = open_trace(export.write(tmp_path / "pages.sqlite"), cache=False)
    assert not len(trace.all_steps)
