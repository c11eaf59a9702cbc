"""The verdict on programs without GPU work: recordings of 100 ms whose parts are known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kineto_files import Event, annotation, frame, op, write

from warpline.analyses.cpu_time import CpuPart, CpuTime
from warpline.cli.main import run
from warpline.findings.cpu_verdict import cpu_verdict
from warpline.findings.diagnosis import diagnose
from warpline.findings.model import Verdict
from warpline.trace.open import open_trace

STEP_US = 100_000.0
MAIN, OTHER = 100, 200


def verdict(folder: Path, events: list[Event]) -> Verdict:
    found = diagnose(
        open_trace(write(folder, [annotation("ProfilerStep#1", 0, STEP_US), *events]), cache=False)
    ).verdict
    assert found is not None
    return found


def on(thread: int, event: Event) -> Event:
    return {**event, "tid": thread}


def test_loading_without_workers_asks_for_workers(tmp_path: Path) -> None:
    loading = annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 80_000)
    found = verdict(tmp_path, [loading, op("aten::mm", 80_000, 20_000)])
    assert found.cause == "input"
    assert found.sentence.startswith(
        "Input-bound: loading data takes 80.0 ms of each 100 ms step (80.0 %), in enumerate"
    )
    assert "If data were always ready, the step would take 20.0 ms. The DataLoader has no workers." in found.sentence
    assert "num_workers=" in found.sentence


def test_loading_with_workers_asks_for_more_of_them(tmp_path: Path) -> None:
    loading = annotation("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 0, 80_000)
    found = verdict(tmp_path, [loading, op("aten::mm", 80_000, 20_000)])
    assert "The DataLoader has too few workers" in found.sentence


def test_python_is_named_with_its_function(tmp_path: Path) -> None:
    events = [
        frame("train.py(30): step", 0, STEP_US, 1, None),
        frame("train.py(12): tokenise", 0, 70_000, 2, 1),
        op("aten::mm", 70_000, 25_000),
    ]
    found = verdict(tmp_path, events)
    assert found.cause == "python"
    assert (
        "Python code takes 75.0 ms of each 100 ms step (75.0 %), 70.0 ms of it in tokenise of train.py"
        in found.sentence
    )


@pytest.mark.parametrize(("view_us", "cause"), [(5, "compute"), (200, "unclear")])
def test_a_view_that_takes_long_shows_that_the_recording_does(tmp_path: Path, view_us: float, cause: str) -> None:
    """Fifty times a matmul of 1.5 ms beside a view, which computes nothing."""
    events: list[Event] = []
    for number in range(50):
        begin = 2_000.0 * number
        events += [op("aten::transpose", begin, view_us), op("aten::mm", begin + view_us, 1_500)]
    found = verdict(tmp_path, events)
    assert found.cause == cause
    assert ("aten::transpose takes 200 µs each time, and computes nothing" in found.sentence) == (cause == "unclear")


def test_an_op_that_only_allocates_computes_nothing(tmp_path: Path) -> None:
    """The first tensor on a GPU starts CUDA, which a recording of the CPU alone shows as `aten::empty_strided`."""
    sentence = verdict(tmp_path, [op("aten::empty_strided", 0, 30_000), op("aten::mm", 30_000, 60_000)]).sentence
    assert "large ops take 60.0 ms of each 100 ms step" in sentence
    assert verdict(tmp_path, [op("aten::empty_strided", 0, 90_000)]).cause == "unclear"


def test_one_large_op_asks_for_threads(tmp_path: Path) -> None:
    found = verdict(tmp_path, [op("aten::mm", 0, 95_000), op("aten::add", 95_000, 4_000)])
    assert found.cause == "compute"
    assert "large ops take 99.0 ms of each 100 ms step (99.0 %), 95.0 ms of it in aten::mm." in found.sentence
    assert "torch.set_num_threads" in found.sentence


def test_large_ops_without_sizes_ask_to_measure_threads(tmp_path: Path) -> None:
    """Nothing says whether 95 ms are much for this op: then more threads may make it worse."""
    assert "measure several numbers" in verdict(tmp_path, [op("aten::mm", 0, 95_000)]).sentence


def test_the_function_that_calls_pythons_own_library_is_named(tmp_path: Path) -> None:
    """Two functions of Python's own take 40 and 30 ms below one of the user's, which takes 10 ms itself."""
    events = [
        frame("serve.py(30): <module>", 0, STEP_US, 1, None),
        frame("serve.py(12): clean", 1_000, 80_000, 2, 1),
        frame("_strptime.py(309): _strptime", 1_000, 40_000, 3, 2),
        frame("locale.py(396): normalize", 41_000, 30_000, 4, 2),
    ]
    found = verdict(tmp_path, events).sentence
    assert "80.0 ms of it in clean, defined at serve.py:12 (most in _strptime.py(309): _strptime)" in found


def test_ops_slower_than_one_slow_core_ask_for_fewer_threads(tmp_path: Path) -> None:
    """GELU of 1,024 FP32 numbers moves 8 kB and takes 8 ms: threads that wait for each other. At 1 FLOP or byte a
    nanosecond and 20 µs a call one slow core needs less than 0.1 ms."""
    sizes = {"Input Dims": [[1024], []], "Input type": ["float", ""]}
    found = verdict(tmp_path, [op("aten::gelu", 8_000.0 * number, 8_000, **sizes) for number in range(12)])
    assert found.cause == "compute"
    assert "OMP_NUM_THREADS=1" in found.sentence
    assert "all physical cores" not in found.sentence


def test_ops_with_much_work_ask_for_all_cores(tmp_path: Path) -> None:
    """A matmul of 2 × 1,000³ FLOPs in 48 ms: 42 GFLOP/s."""
    sizes = {"Input Dims": [[1000, 1000], [1000, 1000]], "Input type": ["float", "float"]}
    found = verdict(tmp_path, [op("aten::mm", 48_000.0 * number, 48_000, **sizes) for number in range(2)])
    assert "all physical cores" in found.sentence


def test_slow_ops_on_half_types_say_nothing_about_threads(tmp_path: Path) -> None:
    sizes = {"Input Dims": [[1024], []], "Input type": ["c10::Half", ""]}
    found = verdict(tmp_path, [op("aten::gelu", 8_000.0 * number, 8_000, **sizes) for number in range(12)])
    assert "all physical cores" in found.sentence


def test_float64_is_said_and_autocast_is_not_advised(tmp_path: Path) -> None:
    """Autocast leaves float64 as it is. The matmuls take 90 of 100 ms, at 44 GFLOP/s."""
    sizes = {"Input Dims": [[1000, 1000], [1000, 1000]], "Input type": ["double", "double"]}
    found = verdict(tmp_path, [op("aten::mm", 45_000.0 * number, 45_000, **sizes) for number in range(2)])
    assert found.cause == "compute"
    assert "These ops compute in float64" in found.sentence
    assert "bf16" not in found.sentence


def test_an_optimizer_that_updates_one_by_one_is_told_with_its_time(tmp_path: Path) -> None:
    """600 ops of 10 µs with 90 µs between them in optimizer.step(), which takes 60 ms, and 400 before it. The inside of
    the range is in pieces as short as what lies between the other ops."""
    events = [op("aten::mul", 100.0 * number, 10) for number in range(1_000)]
    found = verdict(tmp_path, [*events, annotation("Optimizer.step#MyAdam.step", 40_000, 60_000)])
    assert found.cause == "dispatch"
    assert "calling 1,000 small ops takes 100 ms of each 100 ms step" in found.sentence
    assert "optimizer.step() takes 60.0 ms of each 100 ms step (60.0 %) in all." in found.sentence
    assert "update the parameters one by one" in found.sentence


def batches(second: float, *, seed: bool = True) -> list[Event]:
    """Two batches, of which the second is asked for 50 ms after the first and takes so long (µs). Between them a new
    iterator may draw its seed."""
    name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    drawn = [op("aten::random_", 3_000, 10)] if seed else []
    return [annotation(name, 0, 2_000), *drawn, annotation(name, 52_000, second), op("aten::mm", 92_000, 8_000)]


def test_workers_that_start_at_every_epoch_are_to_stay(tmp_path: Path) -> None:
    """50 ms less the op between the batches, and 40 ms for the first one of the new workers."""
    found = verdict(tmp_path, batches(40_000))
    assert found.cause == "input"
    assert "loading data takes 92.0 ms" in found.sentence
    assert "90.0 ms of it in new DataLoader workers, until their first batch" in found.sentence
    assert "persistent_workers=True" in found.sentence
    assert "add workers" not in found.sentence


def test_code_between_two_batches_starts_no_workers(tmp_path: Path) -> None:
    assert "persistent_workers" not in verdict(tmp_path, batches(40_000, seed=False)).sentence


def test_lines_on_which_no_op_runs_are_named(tmp_path: Path) -> None:
    """40 ms in two parts of one line, 30 ms on another, and 5 ms without a line."""
    trace = open_trace(write(tmp_path, [annotation("ProfilerStep#1", 0, STEP_US), op("aten::mm", 0, 1)]), cache=False)

    def gap(self_ms: int, line: int | None, following: str) -> CpuPart:
        place = {"file": "train.py", "line": line, "function": "main", "line_is": "call"} if line else {}
        return CpuPart("gap", f"before {following}", self_ms * 10**6, 1, usual_ns=self_ms * 10**6, **place)

    parts = (gap(30, 8, "aten::mm"), gap(25, 5, "aten::to"), gap(15, 5, "aten::mm"), gap(5, None, "aten::mm"))
    found = cpu_verdict(trace, CpuTime("main", 100 * 10**6, 1, True, parts, source="run"))
    assert found.cause == "unclear"
    assert "40.0 ms in train.py:5 and 30.0 ms in train.py:8" in found.sentence
    assert "nothing is recorded" not in found.sentence


def test_many_new_tensors_ask_for_one_of_all_values(tmp_path: Path) -> None:
    """1,000 ops of 10 µs, one in ten the mark of torch.tensor()."""
    names = ["aten::lift_fresh", *["aten::to"] * 9]
    found = verdict(tmp_path, [op(names[number % 10], 100.0 * number, 10) for number in range(1_000)])
    assert found.cause == "dispatch"
    assert "make one of all values" in found.sentence
    assert "torch.compile" not in found.sentence


def test_many_small_ops_ask_for_a_compiler(tmp_path: Path) -> None:
    """1,000 ops of 10 µs with 90 µs between them."""
    found = verdict(tmp_path, [op("aten::mul", 100.0 * number, 10) for number in range(1_000)])
    assert found.cause == "dispatch"
    assert "calling 1,000 small ops takes 100 ms of each 100 ms step" in found.sentence
    assert "torch.compile" in found.sentence


def test_gloo_on_another_thread_is_communication(tmp_path: Path) -> None:
    found = verdict(tmp_path, [op("aten::mm", 0, 10_000), on(OTHER, annotation("gloo:all_reduce", 10_000, 85_000))])
    assert found.cause == "comm"
    assert "85.0 ms of each 100 ms step (85.0 %), in gloo:all_reduce on other threads" in found.sentence
    assert "warpline diagnose FOLDER" in found.sentence


@pytest.mark.parametrize(("name", "advised"), [("gloo:all_reduce", True), ("gloo:recv", False)])
def test_only_averaged_gradients_can_be_averaged_less_often(name: str, advised: bool, tmp_path: Path) -> None:
    found = verdict(tmp_path, [op("aten::mm", 0, 10_000), on(OTHER, annotation(name, 10_000, 85_000))])
    assert found.cause == "comm"
    assert ("no_sync" in found.sentence) == advised


@pytest.mark.parametrize(
    ("last", "said"),
    [
        (20_000, "large ops take 95.0 ms of each 100 ms step (95.0 %), in aten::mm."),
        (40_000, "by the usual time of each op, large ops take 75.0 ms of each 100 ms step (75.0 %), in aten::mm."),
    ],
)
def test_one_time_for_one_thing(last: int, said: str, tmp_path: Path) -> None:
    """Five matmuls of 15 ms and one of 20 ms: usually 90 ms, which is within a tenth of the step, so that all is as in
    the account. Four of 15 ms and one of 40 ms, which other programs interrupted: usually 75 ms."""
    sizes = {"Input Dims": [[1000, 1000], [1000, 1000]], "Input type": ["float", "float"]}
    usual = 5 if last == 20_000 else 4
    lengths = [*[15_000] * usual, last]
    events = [op("aten::mm", sum(lengths[:number]), length, **sizes) for number, length in enumerate(lengths)]
    assert said in verdict(tmp_path, events).sentence


def test_what_another_thread_runs_in_python_is_what_is_waited_for(tmp_path: Path) -> None:
    events = [
        frame("train.py(30): step", 0, STEP_US, 1, None),
        frame("queue.py(180): get", 0, 90_000, 2, 1),
        on(OTHER, frame("data.py(5): tokenise", 0, 80_000, 3, None)),
        on(OTHER, frame("<built-in method acquire of _thread.lock object>", 80_000, 20_000, 4, None)),
    ]
    found = verdict(tmp_path, events)
    assert found.cause == "python"
    assert "80.0 ms of it in data.py(5): tokenise on other threads" in found.sentence


def test_waiting_for_a_thread_that_is_not_recorded_says_how_to_record_it(tmp_path: Path) -> None:
    events = [frame("train.py(30): step", 0, STEP_US, 1, None), frame("threading.py(1100): join", 0, 90_000, 2, 1)]
    found = verdict(tmp_path, events)
    assert found.cause == "wait"
    assert "waits for another thread or process for 90.0 ms" in found.sentence
    assert "profile_all_threads" in found.sentence


def test_the_inside_of_a_range_is_unclear_and_not_python(tmp_path: Path) -> None:
    found = verdict(tmp_path, [annotation("## forward ##", 0, 90_000), op("aten::mm", 90_000, 10_000)])
    assert found.cause == "unclear"
    assert "most of it inside ## forward ##" in found.sentence
    assert "with_stack=True" in found.sentence


def test_two_causes_of_the_same_weight_are_both_named(tmp_path: Path) -> None:
    events = [annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 50_000)]
    found = verdict(tmp_path, [*events, op("aten::mm", 50_000, 48_000)])
    assert (found.cause, found.also) == ("input", "compute")
    assert "Large ops take 48.0 ms of each 100 ms step" in found.sentence


def test_steps_in_which_nothing_is_recorded_are_unclear(tmp_path: Path) -> None:
    assert verdict(tmp_path, []).cause == "unclear"


def test_terminal_json_and_page_have_the_same_headline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, [annotation("ProfilerStep#1", 0, STEP_US), op("aten::mm", 0, 95_000)])
    assert run(["diagnose", str(path), "--json"]) == 0
    headline = json.loads(capsys.readouterr().out)["verdict"]["sentence"]
    assert run(["diagnose", str(path)]) == 0
    assert headline in " ".join(capsys.readouterr().out.split())
    page = tmp_path / "page.html"
    assert run(["report", str(path), "-o", str(page)]) == 0
    assert headline.split(". ")[0] in page.read_text()
