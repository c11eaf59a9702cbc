"""The diagnosis: its numbers on paper, and the keys that other programs rely on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kineto_files import annotation, call, copy, launched, op, write
from paths import RECORDINGS
from small_programs import GEMM_BF16, H200, MUL, STEPS, Program

from warpline.analyses.idle.gaps import CAUSES
from warpline.findings.diagnosis import Diagnosis, diagnose
from warpline.trace.open import open_trace

FILES = RECORDINGS


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_contract_holds_for_every_recorded_profile(file: Path) -> None:
    answer = json.loads(json.dumps(diagnose(open_trace(file)).to_dict()))
    assert answer["schema"] == "warpline.diagnosis/1"
    assert set(answer) >= {"trace", "devices", "replay", "verdict", "findings"}
    assert set(answer["trace"]) == {"source", "device", "window_ns", "steps", "step_ns", "health"}
    assert answer["trace"]["device"] == "NVIDIA H200"
    for entry in answer["trace"]["health"]:
        assert set(entry) == {"code", "severity", "message"}
    for device in answer["devices"]:
        assert set(device["busy"]) == {"compute_ns", "copy_ns", "comm_ns", "memset_ns"}
        assert set(device["idle"]) == {f"{cause}_ns" for cause in CAUSES}
        assert sum(device["busy"].values()) == device["busy_ns"]
        assert sum(device["idle"].values()) == device["idle_ns"]
        assert device["busy_ns"] + device["idle_ns"] == device["window_ns"] == answer["trace"]["window_ns"]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    events = [
        op("aten::mm", 0, 100, external=1),
        *launched("gemm", 10, 20, 10, 1),
        *launched("gemm", 30, 40, 20, 2),
        *launched("relu", 50, 62, 3, 3),
        *[
            event | {"name": "cudaMemcpyAsync"} if event["cat"] == "cuda_runtime" else event
            for event in launched("x", 80, 90, 1, 4)[:1]
        ],
        copy("Memcpy HtoD (Pinned -> Device)", 90, 10, 4, 1_000_000),
        annotation("ProfilerStep#0", 0, 60),
        annotation("ProfilerStep#1", 60, 50),
    ]
    return write(tmp_path, events)


def test_kernels_are_summed_up(small: Path) -> None:
    first, second = diagnose(open_trace(small)).kernels.rows(named=True)
    assert first == {
        "name": "gemm",
        "count": 2,
        "total_ns": 30_000,
        "mean_ns": 15_000.0,
        "median_ns": 15_000.0,
        "min_ns": 10_000,
        "max_ns": 20_000,
        "std_ns": pytest.approx(7071.0678),
        "share": pytest.approx(30 / 33),
        "class": "gemm",
        "tensor_core": None,
        "dtype": None,
    }
    assert (second["name"], second["std_ns"]) == ("relu", 0.0)


def test_copies_have_a_bandwidth(small: Path) -> None:
    (row,) = diagnose(open_trace(small)).copies.rows(named=True)
    assert (row["bytes"], row["total_ns"], row["bytes_per_second"]) == (1_000_000, 10_000, 1e11)


def test_launches_are_counted_by_call(small: Path) -> None:
    calls = {row["name"]: row for row in diagnose(open_trace(small)).launches.rows(named=True)}
    launch = calls["cudaLaunchKernel"]
    assert (launch["calls"], launch["operations"], launch["call_total_ns"]) == (3, 3, 15_000)
    assert (launch["delay_min_ns"], launch["delay_median_ns"], launch["delay_max_ns"]) == (10_000, 10_000, 12_000)
    assert calls["cudaMemcpyAsync"]["calls"] == 1


def test_steps_show_how_busy_the_device_was(small: Path) -> None:
    """The first step launches three kernels, and the last of them ends 5 µs after its range."""
    rows = diagnose(open_trace(small)).steps.rows(named=True)
    assert [(row["length_ns"], row["busy_ns"], row["operations"]) for row in rows] == [
        (65_000, 33_000, 3),
        (45_000, 10_000, 1),
    ]


def test_the_queue_is_as_deep_as_what_waits(tmp_path: Path) -> None:
    events = [event for number in range(4) for event in launched("k", 10 * number, 100 + 10 * number, 10, number + 1)]
    queue = diagnose(open_trace(write(tmp_path, events))).queue
    assert queue is not None
    assert (queue.maximum, queue.mean, queue.empty_share) == (3, 1.5, 0.25)


def written(folder: Path, ops: int, length: float) -> Path:
    """Steps of short ops that launch kernels of this length."""
    program = Program()
    for _ in range(STEPS):
        with program.step():
            for _ in range(ops):
                program.op("aten::mul", (MUL, length), cpu=3, launch=4)
            program.wait()
    return write(folder, program.events, **H200)


def test_a_profile_that_made_the_step_much_longer_is_doubted(tmp_path: Path) -> None:
    diagnosis = diagnose(open_trace(written(tmp_path, 60, 1), cache=False), why=True)
    (entry,) = [one for one in diagnosis.health if one.code == "profiler-distortion"]
    assert entry.severity == "warning"
    assert "without it" in entry.message
    assert diagnosis.judgement is not None
    assert diagnosis.judgement.evidence.question.replay.measured_step_ns > 1.5 * diagnosis.judgement.evidence.step_ns


def test_a_step_that_the_device_paces_is_not_distorted(tmp_path: Path) -> None:
    diagnosis = diagnose(open_trace(written(tmp_path, 4, 500), cache=False), why=True)
    assert "profiler-distortion" not in {entry.code for entry in diagnosis.health}


def slow_or_fast(folder: Path, launch: float) -> Diagnosis:
    """Steps of 40 ops; their kernels take 25 µs each, so that a usual host is just ahead of the device."""
    program = Program()
    for _ in range(STEPS):
        with program.step():
            for _ in range(40):
                program.op("aten::mm", (GEMM_BF16, 25), cpu=6 * launch, launch=launch, shapes=[[512, 512], [512, 512]])
            program.wait()
    return diagnose(open_trace(write(folder, program.events, **H200), cache=False), why=True)


def test_a_host_that_launches_slowly_is_doubted_and_nothing_is_promised_for_it(tmp_path: Path) -> None:
    """Launches of 9 µs are 2.2 times slower than usual (5 µs, of which 1.7 depend on no CPU): 7.3 over 3.3."""
    diagnosis = slow_or_fast(tmp_path, launch=9.0)
    (entry,) = [one for one in diagnosis.health if one.code == "slow-host"]
    assert "2.2× as long as on the reference host" in entry.message
    assert diagnosis.judgement is not None
    question = diagnosis.judgement.evidence.question
    assert question.bare.calm_ns == pytest.approx(40 * 25_000, rel=0.01)  # what the device does
    assert question.bare.step_ns.low == pytest.approx(question.bare.calm_ns)
    graph = question.ask("cuda_graph")
    assert graph.gain.expected > 1.3
    assert question.calm(question.trial("cuda_graph")).gain == pytest.approx(1.0, abs=0.03)
    assert graph.gain.low < 1.0  # what such a host gains is no better known
    assert diagnosis.verdict is not None
    assert (diagnosis.verdict.cause, diagnosis.verdict.fix) == ("unclear", None)


def test_a_usual_host_is_not_doubted(tmp_path: Path) -> None:
    assert "slow-host" not in {one.code for one in slow_or_fast(tmp_path, launch=5.0).health}


def test_the_account_that_is_shown_is_of_the_steps_that_the_verdict_is_about(tmp_path: Path) -> None:
    """A step of 1,000 µs whose GPU work, two kernels of 100 µs, begins after 600 µs; JSON has the recording, as ever."""
    events = [annotation("ProfilerStep#0", 0, 1000), op("aten::resize", 10, 550)]
    events += [*launched("a", 600, 605, 100, 1), *launched("b", 620, 705, 100, 2)]
    found = diagnose(open_trace(write(tmp_path, events)))
    (device,), (recorded,) = found.shown.devices, found.devices
    assert (found.shown.steps, device.window_ns, device.busy_ns) == (1, 1_000_000, 200_000)
    assert recorded.window_ns == 200_000


def test_choosing_all_steps_is_choosing_none(tmp_path: Path) -> None:
    """Eight steps, the first of them cold: all others are judged, whether or not `--steps 0:8` is typed."""
    program = Program()
    for step in range(8):
        begun = program.now
        program.now += 9_000 if step == 0 else 0
        program.op("aten::mul", (MUL, 20), shapes=[[64, 64]])
        program.events.append(annotation(f"ProfilerStep#{step}", begun, program.now - begun))
    path = write(tmp_path, program.events, **H200)
    none, every = (diagnose(open_trace(path, steps=steps)).to_dict() for steps in (None, "0:8"))
    assert none["verdict"] == every["verdict"]
    assert none["findings"] == every["findings"]


def test_a_recording_of_a_graph_capture_has_no_findings(tmp_path: Path) -> None:
    events = [*launched("before", 0, 10, 5, 1), call("cudaStreamBeginCapture", 20, 2, 2)]
    events += [
        event
        for number in range(30)
        for event in (op("aten::mul", 30 + 30 * number, 20), call("cudaLaunchKernel", 35 + 30 * number, 5, 10 + number))
    ]
    events += [call("cudaStreamEndCapture", 940, 5, 3), call("cudaGraphInstantiate", 950, 20, 4)]
    found = diagnose(open_trace(write(tmp_path, [*events, *launched("after", 1000, 1010, 5, 5)])))
    assert found.verdict is not None
    assert found.verdict.cause == "unclear"
    assert "graph capture" in found.verdict.sentence
    assert not found.findings
    assert "recording-of-a-capture" in [one.code for one in found.audit]


def test_a_recording_of_a_single_operation_has_no_findings(tmp_path: Path) -> None:
    events = [op("aten::mul", 10 + 30 * number, 20) for number in range(30)]
    found = diagnose(open_trace(write(tmp_path, [*events, *launched("only", 1000, 1010, 5, 5)])))
    assert found.verdict is not None
    assert "a single GPU operation" in found.verdict.sentence
    assert not found.findings
    assert "single-operation" in [one.code for one in found.audit]


def test_one_step_with_long_ops_is_not_called_cold(tmp_path: Path) -> None:
    """Nothing is loaded or compiled, and there is no other step to compare with."""
    events = [annotation("ProfilerStep#0", 0, 90_000)]
    for number in range(3):
        events += [
            op("aten::reshape", 30_000 * number, 25_000),
            *launched("k", 30_000 * number + 25_100, 30_000 * number + 25_110, 900, 1 + number),
        ]
    found = diagnose(open_trace(write(tmp_path, events)))
    assert "cold_start" not in [finding.cause for finding in found.findings]


@pytest.mark.parametrize(
    ("grid", "block", "cause"),
    [((1, 1, 1), (1, 1, 1), "unclear"), ((999, 1, 1), (16, 1, 1), "unclear"), ((999, 1, 1), (256, 1, 1), "healthy")],
)
def test_kernels_that_can_use_half_of_the_device_at_most_are_not_healthy(
    grid: tuple[int, int, int], block: tuple[int, int, int], cause: str, tmp_path: Path
) -> None:
    device = {**H200["deviceProperties"][0], "warpSize": 32}
    events = []
    for step in range(4):
        events += launched("own_kernel", 1000 * step, 1000 * step + 5, 995, step + 1, grid=grid, block=block)
        events.append(annotation(f"ProfilerStep#{step}", 1000 * step, 1000))
    verdict = diagnose(open_trace(write(tmp_path, events, deviceProperties=[device]))).verdict
    assert verdict is not None
    assert verdict.cause == cause
