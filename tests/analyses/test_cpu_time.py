"""Where the CPU's time goes in traces without GPU work, with answers worked out on paper."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from kineto_files import Event, annotation, frame, launched, op, write
from msgspec.structs import replace

from warpline.analyses.cpu_time import CpuTime, cpu_time
from warpline.cli.main import run
from warpline.findings.cpu_verdict import cpu_verdict
from warpline.trace.open import open_trace

STEP_US, SLEEP_US = 31_000.0, 10_000.0
SLEEP = "<built-in function sleep>"


def steps(count: int = 4, *, stacks: bool = True) -> list[Event]:
    """Each step: 10 ms asleep in `load`, 15 ms in aten::mm (5 ms of them in aten::copy_), 6 ms of Python."""
    events: list[Event] = []
    for number in range(count):
        begin = number * STEP_US
        events.append(annotation(f"ProfilerStep#{number}", begin, STEP_US))
        events.append(op("aten::mm", begin + 12_000, 15_000))
        events.append(op("aten::copy_", begin + 14_000, 5_000))
        if stacks:
            base = 10 * number
            events.append(frame("train.py(30): step", begin, STEP_US, base + 1, None))
            events.append(frame("train.py(12): load", begin + 1_000, SLEEP_US, base + 2, base + 1))
            events.append(frame(SLEEP, begin + 1_000, SLEEP_US, base + 3, base + 2))
    return events


def answer(folder: Path, events: list[Event]) -> CpuTime:
    found = cpu_time(open_trace(write(folder, events), cache=False))
    assert found is not None
    assert sum(part.self_ns for part in found.parts) == found.window_ns  # every nanosecond
    assert sum(found.kinds.values()) == found.window_ns
    return found


def test_a_sleep_is_named_with_its_line_and_its_share(tmp_path: Path) -> None:
    found = answer(tmp_path, steps())
    assert (found.steps, found.step_ns) == (4, STEP_US * 1000)
    longest = found.parts[0]
    by_name = {part.name: part for part in found.parts}
    asleep = by_name["sleep"]
    assert (asleep.kind, asleep.spot, asleep.self_ns / 4, asleep.count) == (
        "sleep",
        "load, defined at train.py:12",
        10_000_000,
        4,
    )
    assert by_name["aten::mm"].self_ns / 4 == 10_000_000  # without the copy inside it
    assert by_name["aten::copy_"].self_ns / 4 == 5_000_000
    assert by_name["train.py(30): step"].self_ns / 4 == 6_000_000
    assert longest.self_ns == 40_000_000
    assert "Of each 31.0 ms step" in found.sentence
    assert "10.0 ms (32.3 %) asleep in load, defined at train.py:12" in found.sentence


def test_without_stacks_the_gap_is_named_after_what_follows(tmp_path: Path) -> None:
    """12 ms before the product and 4 ms after it, which lie before the product of the next step, are not recorded."""
    found = answer(tmp_path, steps(stacks=False))
    gaps = {part.name: part.self_ns / 1e6 for part in found.parts if part.kind == "gap"}
    assert gaps == {"before aten::mm": 4 * 12.0 + 3 * 4.0, "after the last event": 4.0}
    assert "with nothing recorded before aten::mm" in found.sentence
    assert "with_stack=True" in found.sentence


def test_loading_and_waiting_have_kinds_of_their_own(tmp_path: Path) -> None:
    events = [
        frame("train.py(1): main", 0, 1000, 1, None),
        frame("torch/utils/data/dataloader.py(700): __next__", 0, 300, 2, 1),
        frame("<built-in method decode of Image>", 100, 200, 3, 2),
        frame("threading.py(300): wait", 400, 500, 4, 1),
    ]
    found = answer(tmp_path, events)
    assert not found.has_steps
    assert {kind: length for kind, length in found.kinds.items() if length} == {
        "input": 300_000,
        "wait": 500_000,
        "python": 200_000,
    }


def test_only_the_chosen_steps_count(tmp_path: Path) -> None:
    trace = open_trace(write(tmp_path, steps()), cache=False, steps="1:3")
    found = cpu_time(trace)
    assert found is not None
    assert (found.steps, found.window_ns) == (2, 62_000_000)


def test_events_that_overlap_without_nesting_still_sum_to_the_window(tmp_path: Path) -> None:
    found = answer(tmp_path, [op("a", 0, 10), op("b", 5, 10), op("c", 12, 10)])
    assert found.window_ns == 22_000


def test_a_trace_with_gpu_work_has_no_such_answer(tmp_path: Path) -> None:
    assert cpu_time(open_trace(write(tmp_path, launched("gemm", 0, 10, 5, 1)), cache=False)) is None


def test_the_report_and_the_json_have_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, steps())
    assert run(["diagnose", str(path)]) == 0
    text = capsys.readouterr().out
    assert "no GPU activity · 4 steps of 31.0 ms" in text
    assert "asleep in load, defined at train.py:12" in " ".join(text.split())
    assert "GPU busy" not in text
    assert run(["diagnose", str(path), "-v"]) == 0
    text = capsys.readouterr().out
    assert "Where the CPU's time goes" in text
    assert "GPU busy" not in text
    assert run(["diagnose", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["verdict"]["cause"] == "compute"
    assert told["cpu"]["kinds"]["sleep_ns"] == 40_000_000
    assert sum(part["self_ns"] for part in told["cpu"]["parts"]) == told["cpu"]["window_ns"] == 124_000_000


def test_a_profile_that_torch_records_here_names_the_sleep(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from torch.profiler import ProfilerActivity, profile, schedule  # noqa: PLC0415

    path = tmp_path / "trace.json"
    x = torch.randn(64, 64)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=1, active=3, repeat=1),
        on_trace_ready=lambda profiler: profiler.export_chrome_trace(str(path)),
        with_stack=True,
    ) as profiler:
        for _ in range(4):
            time.sleep(0.01)
            x = (x @ x).relu() / 64
            profiler.step()
    found = cpu_time(open_trace(path, cache=False))
    assert found is not None
    assert found.steps == 3
    asleep = sum(part.self_ns for part in found.parts if part.kind == "sleep")
    assert asleep >= 2 * 10_000_000
    assert sum(part.self_ns for part in found.parts) == found.window_ns


def test_steps_in_which_nothing_is_recorded_are_one_gap(tmp_path: Path) -> None:
    events = [annotation("ProfilerStep#1", 0, 1000), op("aten::empty", 5000, 3)]
    assert answer(tmp_path, events).sentence.startswith("Of each 1.00 ms step: 1.00 ms (100.0 %) with nothing recorded")


def test_the_hint_names_the_profiler_that_was_used(tmp_path: Path) -> None:
    found = answer(tmp_path, steps(stacks=False))
    assert "with_stack=True" in found.sentence
    other = replace(found, source="nsys").sentence
    assert "--trace=cuda,nvtx,osrt" in other
    assert "with_stack" not in other


def test_what_other_threads_do_fills_a_range_in_which_nothing_else_is_recorded(tmp_path: Path) -> None:
    """Of 100 µs, the thread itself shows 10 µs; in the other 90 another one runs an op for 30 µs while a third one
    communicates for 70."""
    events = [
        annotation("ProfilerStep#0", 0, 100),
        annotation("## backward ##", 0, 100),
        op("aten::sum", 0, 10),
        op("aten::mm", 10, 30, thread=201),
        annotation("gloo:all_reduce", 20, 70, thread=202),
    ]
    found = answer(tmp_path, events)
    assert {kind: length for kind, length in found.kinds.items() if length} == {
        "op": 40_000,
        "comm": 50_000,
        "range": 10_000,
    }
    assert [(part.name, part.elsewhere) for part in found.parts[:2]] == [("gloo:all_reduce", True), ("aten::mm", True)]
    assert "50.0 µs (50.0 %) gloo:all_reduce on other threads" in found.sentence


def test_the_autograd_engine_is_the_frameworks_code_and_not_pythons(tmp_path: Path) -> None:
    """A step of 400 µs in loss.backward(): two ops of 10 µs, and the engine's own code around them."""
    engine = "<built-in method run_backward of torch._C._EngineBase object at 0xffff>"
    events: list[Event] = []
    for number in range(4):
        begin, base = 400.0 * number, 10 * number
        events += [
            annotation(f"ProfilerStep#{number}", begin, 400),
            frame("train.py(3): step", begin, 400, base + 1, None),
        ]
        events.append(frame(engine, begin + 20, 360, base + 2, base + 1))
        events += [op("aten::mm", begin + 100, 10), op("aten::mul", begin + 200, 10)]
    found = answer(tmp_path, events)
    assert {kind: ns for kind, ns in found.kinds.items() if ns} == {
        "op": 4 * 20_000,
        "framework": 4 * 340_000,
        "python": 4 * 40_000,
    }
    trace = open_trace(write(tmp_path, events), cache=False)
    assert cpu_verdict(trace, found).cause == "dispatch"


def test_the_sum_of_small_parts_is_no_part_of_the_answer(tmp_path: Path) -> None:
    """A step of 1 ms: 300 ops of 2 µs, each with a name of its own, are 60 %; one of 100 µs is named, the sum is last."""
    events = [annotation("ProfilerStep#0", 0, 1000), op("aten::mm", 0, 100)]
    events += [op(f"own::op{number}", 100 + 3 * number, 2) for number in range(300)]
    found = answer(tmp_path, events)
    assert "10.0 %) aten::mm" in found.sentence
    assert "smaller" not in found.sentence
    sums = [part for part in found.parts if part.summed > 1]
    assert [(part.kind, part.name, part.self_ns) for part in sums] == [
        ("op", "300 smaller", 600_000),
        ("gap", "300 smaller", 300_000),
    ]
    assert found.parts[-2:] == tuple(sums)
    verdict = cpu_verdict(open_trace(write(tmp_path, events), cache=False), found)
    assert "smaller" not in verdict.sentence


def interrupted_steps(interruption_us: float) -> list[Event]:
    """Six steps of 100 ops of 10 µs on the same sizes; in each, another op is interrupted for so long."""
    events: list[Event] = []
    zero = 0.0
    for step in range(6):
        begun = zero
        for number in range(100):
            length = 10 + (interruption_us if number == 7 * step else 0)
            events.append(op("aten::add", zero, length, **{"Input Dims": [[8], [8]]}))
            zero += length
        events.append(annotation(f"ProfilerStep#{step}", begun, zero - begun))
    return events


@pytest.mark.parametrize(
    ("interruption_us", "cause", "words"),
    [
        (50, "dispatch", "calling 100 small ops takes 1.05 ms of each 1.05 ms step (100.0 %)"),
        (600, "dispatch", "600 µs of each 1.60 ms step (37.5 %) are beyond the usual time of the same ops"),
        (9000, "unclear", "Of the rest, calling 100 small ops takes 1.00 ms of each 10.0 ms step (10.0 %)"),
    ],
)
def test_ops_that_other_programs_interrupt_count_with_their_usual_time(
    interruption_us: float, cause: str, words: str, tmp_path: Path
) -> None:
    opened = open_trace(write(tmp_path, interrupted_steps(interruption_us)), cache=False)
    found = cpu_time(opened)
    assert found is not None
    (part,) = found.parts
    assert (part.self_ns, part.usual_ns) == (6_000_000 + round(6000 * interruption_us), 6_000_000)
    verdict = cpu_verdict(opened, found)
    assert verdict.cause == cause
    assert words in verdict.sentence


def test_ops_never_usually_take_longer_than_they_did(tmp_path: Path) -> None:
    """Three times the median of 20, 20 and 2 ms are 60 ms, and the step takes 42."""
    sizes = {"Input Dims": [[8]], "Input type": ["float"]}
    lengths = ((0, 20_000), (20_000, 20_000), (40_000, 2_000))
    events = [op("aten::mm", begin, length, **sizes) for begin, length in lengths]
    (part,) = answer(tmp_path, [annotation("ProfilerStep#0", 0, 42_000), *events]).parts
    assert (part.self_ns, part.usual_ns) == (42_000_000, 42_000_000)
