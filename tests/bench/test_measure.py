"""The engine on a device of the test's own making, whose true times are known."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from fake_torch import Device, Tensor, fake_torch

import warpline
from warpline.bench import measure as engine
from warpline.bench.calls import AlternatingCalls
from warpline.bench.measure import Refusal, capture, measure
from warpline.bench.nvml import DeviceReading
from warpline.bench.result import Result, span
from warpline.bench.subject import Settings, Subject
from warpline.bench.watch import DeviceWatch
from warpline.bench.work import CallWork
from warpline.errors import UsageError, WarplineError

STEADY = DeviceReading(1980, 3201, 1980, 45, 300.0, ())


@pytest.fixture(autouse=True)
def no_sensors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "watch_device", lambda torch: DeviceWatch(lambda: STEADY))


def timed(
    device: Device,
    function: Callable[..., object],
    *args: Any,
    work: CallWork | None = None,
    l2_bytes: int = 1 << 20,
    **options: Any,
) -> Result:
    settings = Settings(now=device.now, **{"seconds": 0.01, **options})
    subject = Subject("it", AlternatingCalls(function, [args]), work)
    return measure([subject], settings, fake_torch(device, l2_bytes=l2_bytes))[0]


def codes(result: Result) -> set[str]:
    return {note.code for note in result.notes}


def test_it_reads_the_kernel_and_not_the_launch() -> None:
    device = Device()
    result = timed(device, lambda: device.launch(50_000))
    # The second event adds its own 200 ns, which is what two events read with nothing between them.
    assert result.median_ns == pytest.approx(50_200, abs=1)
    assert result.overhead_ns == pytest.approx(200, abs=101)
    assert result.verdict == "sound"


@pytest.mark.parametrize("kernels", [1, 5, 40])
def test_launch_gaps_of_several_kernels_are_not_execution(kernels: int) -> None:
    device = Device()
    result = timed(device, lambda: [device.launch(1_000) for _ in range(kernels)])
    assert result.median_ns == pytest.approx(kernels * 1_000 + 200, abs=1)
    assert result.host is not None
    assert result.host.submit_ns == kernels * 8_000
    assert "submission-bound" in codes(result)


def test_submission_execution_and_wall_time_stand_side_by_side() -> None:
    device = Device()
    result = timed(device, lambda: device.launch(3_000_000))
    assert result.host is not None
    assert (result.host.submit_ns, result.host.wall_ns) == (8_000, 3_000_000 + 8_000 + 2_000)
    assert not result.host.waits
    assert "submission-bound" not in codes(result)


def test_a_call_that_waits_for_the_gpu_is_found_out() -> None:
    device = Device()

    def call() -> None:
        device.launch(100_000)
        device.wait()

    result = timed(device, call)
    assert result.host is not None
    assert result.host.waits
    assert "waits" in codes(result)


def test_the_l2_is_emptied_before_each_call_unless_it_is_to_stay_hot() -> None:
    cold, hot = Device(), Device()
    assert timed(cold, lambda: cold.launch(5_000, "mine")).cache == "flushed"
    last = [name for name in cold.log if name != "hold"]
    assert last[-2:] == ["flush", "mine"]
    assert last.count("flush") >= last.count("mine")
    assert timed(hot, lambda: hot.launch(5_000, "mine"), flush=False).cache == "hot"
    assert "flush" not in hot.log


def test_graph_mode_times_many_calls_as_one() -> None:
    device = Device()
    result = timed(device, lambda: device.launch(1_000), graph=True)
    assert result.clock == "graph"
    assert result.calls_per_sample == pytest.approx(2_000_000 / 10_000, rel=0.9)
    assert result.median_ns == pytest.approx(1_000, rel=0.01)
    assert result.overhead_ns < 10


def test_what_cannot_be_captured_is_timed_call_by_call_and_the_reason_given() -> None:
    device = Device()

    def waiting() -> None:
        device.launch(10_000)
        device.wait()

    def refusing() -> None:
        device.launch(10_000)
        if device.capturing is not None:
            device.wait()

    for call, reason in (
        (waiting, "it synchronises with the GPU"),
        (refusing, "operation not permitted when stream is capturing"),
    ):
        result = timed(device, call, graph=True)
        assert result.clock == "events"
        note = next(note for note in result.notes if note.code == "no-graph")
        assert f"({reason})" in note.message
        assert result.verdict == "doubtful"


def test_a_failed_capture_leaves_the_random_generator_usable() -> None:
    device = Device()
    torch = fake_torch(device)
    marked = SimpleNamespace(state="captured", clone_state=lambda: "fresh")
    marked.graphsafe_set_state = lambda state: setattr(marked, "state", state)
    torch.cuda.default_generators = (marked,)

    def refusing() -> None:
        device.launch(10_000)
        if device.capturing is not None:
            device.wait()

    assert isinstance(capture(torch, refusing, 10_000, 1), Refusal)
    assert marked.state == "fresh"


def test_slow_first_calls_are_warm_up_and_not_result() -> None:
    device = Device()
    durations = iter([*[500_000] * 60, *[100_000] * 100_000])
    result = timed(device, lambda: device.launch(next(durations)))
    assert result.warm_up.settled
    assert result.warm_up.calls > 60
    assert result.median_ns == pytest.approx(100_200, abs=1)


def test_a_function_that_never_settles_is_doubtful() -> None:
    device = Device()
    state = {"ns": 1e6}

    def call() -> None:
        state["ns"] *= 1.01
        device.launch(state["ns"])

    result = timed(device, call, warm_up_seconds=0.2)
    assert {"not-settled", "drift"} <= codes(result)
    assert result.verdict == "doubtful"


@pytest.mark.parametrize(("here_ns", "there_ns"), [(10_000, 2_000_000), (None, 2_000_000), (None, 15_000)])
def test_work_on_another_stream_is_noticed_and_waited_for(here_ns: int | None, there_ns: int) -> None:
    device = Device()

    def call() -> None:
        if here_ns is not None:
            device.launch(here_ns)
        else:
            device.host_ns += 8_000
        device.elsewhere_ns = device.host_ns + there_ns

    device.elsewhere_ns = 0  # type: ignore[attr-defined]
    torch = fake_torch(device)

    def wait_for_all() -> None:
        device.wait()
        device.host_ns = max(device.host_ns, device.elsewhere_ns)  # type: ignore[attr-defined]

    torch.cuda.synchronize = wait_for_all
    result = measure(
        [Subject("it", AlternatingCalls(call, [()]), None)], Settings(now=device.now, seconds=0.01), torch
    )[0]
    assert "other-stream" in codes(result)
    assert result.clock == "wall"
    assert result.median_ns == there_ns + 8_000


def test_a_time_below_the_floor_is_impossible() -> None:
    device = Device()
    # 2 * 4096^3 FLOPs in bf16 take an H200 at least 139 µs at 989 TFLOP/s; the boost clock is granted 9 %.
    result = timed(device, lambda: device.launch(50_000), work=CallWork(2 * 4096**3, 0, "bf16"))
    assert result.verdict == "impossible"
    note = next(note for note in result.notes if note.code == "impossible")
    assert "cannot do this work in less than 127 µs" in note.message
    assert "FLOP count" in note.message
    assert str(result).startswith("it on NVIDIA H200: impossible, measured 50.2 µs")
    assert repr(result) == "<Result it on NVIDIA H200: impossible, measured 50.2 µs>"
    assert "impossible" in result._repr_html_()


def test_fp32_that_runs_in_tf32_is_named_as_the_reason() -> None:
    device = Device()
    torch = fake_torch(device)
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    subject = Subject("it", AlternatingCalls(lambda: device.launch(340_000), [()]), CallWork(2 * 4096**3, 0, "fp32"))
    result = measure([subject], Settings(now=device.now, seconds=0.01), torch)[0]
    assert result.verdict == "impossible"
    assert "use dtype tf32" in result.notes[0].message


def test_data_that_fit_the_cache_may_be_faster_than_memory() -> None:
    device = Device()
    small = timed(device, lambda: device.launch(2_000), work=CallWork(0, 20e6, "fp32"), l2_bytes=60 << 20)
    assert small.verdict != "impossible"
    assert "above-roof" in codes(small)
    large = timed(device, lambda: device.launch(2_000), work=CallWork(0, 2e9, "fp32"), l2_bytes=60 << 20)
    assert large.verdict == "impossible"


def test_rates_and_the_share_of_the_roof_follow_from_the_work() -> None:
    device = Device()
    result = timed(device, lambda: device.launch(999_800), work=CallWork(4e11, 1e6, "bf16"))
    assert result.judgement is not None
    assert result.judgement.flops_per_second == pytest.approx(4e14)
    assert result.judgement.roof_pct == pytest.approx(100 * 4e11 / 781.8538e12 / 1e-3, rel=1e-3)
    assert result.judgement.bound == "compute"


@pytest.mark.parametrize(
    ("clocks", "sentence"),
    [
        ([1980, 1980, 1980], ""),
        ([1980, 1965, 1950], ""),
        ([1980, 1700, 1410], "the clock fell from 1,980 to 1,410 MHz during the measurement (power cap)"),
        ([1410, 1700, 1980], "the clock varied between 1,410 and 1,980 MHz during the measurement (power cap)"),
    ],
)
def test_a_moving_clock_marks_the_result(clocks: list[int], sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter([replace(STEADY, sm_mhz=mhz, reasons=("power cap",)) for mhz in clocks])
    monkeypatch.setattr(engine, "watch_device", lambda torch: DeviceWatch(lambda: next(readings, None)))
    device = Device()
    result = timed(device, lambda: device.launch(1_000_000), seconds=0.2)
    assert result.clocks is not None
    assert result.clocks.sentence == sentence
    assert ("clock-fell" in codes(result)) == bool(sentence)


def test_inputs_of_zeros_are_doubtful() -> None:
    device = Device()
    assert "zeros" in codes(timed(device, lambda x: device.launch(50_000), Tensor(1, zero=True)))
    assert "zeros" not in codes(timed(device, lambda x: device.launch(50_000), Tensor(1)))


def test_two_functions_are_timed_in_turn_so_that_drift_hits_both(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device()
    slow_down = {"factor": 1.0}

    def work(duration_ns: float) -> Callable[[], None]:
        def call() -> None:
            slow_down["factor"] *= 1.002
            device.launch(duration_ns * slow_down["factor"])

        return call

    monkeypatch.setitem(sys.modules, "torch", fake_torch(device))
    settings = Settings(now=device.now, seconds=0.05, warm_up_seconds=0.01)
    found = warpline.bench.compare(work(100_000), work(90_000), names=("old", "new"), settings=settings)
    assert found.ratio == pytest.approx(100 / 90, rel=0.01)
    assert found.faster is found.second
    assert found.low <= found.ratio <= found.high
    assert str(found).startswith("new is 1.1")
    assert found.first.summary.max_ns > 1.05 * found.first.summary.min_ns


def test_equal_functions_show_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device()
    wobble = iter(range(10**9))
    call = lambda: device.launch(100_000 + 37 * (next(wobble) * 7919 % 101))  # noqa: E731
    monkeypatch.setitem(sys.modules, "torch", fake_torch(device))
    found = warpline.bench.compare(call, call, settings=Settings(now=device.now, seconds=0.05))
    assert found.faster is None
    assert str(found).startswith("no significant difference")


def test_a_call_without_gpu_work_is_timed_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device()

    def call() -> None:
        device.host_ns += 300

    monkeypatch.setitem(sys.modules, "torch", fake_torch(device))
    result = warpline.bench(call, settings=Settings(now=device.now, seconds=0.01))
    assert result.clock == "cpu"
    assert "cpu" in codes(result)


def test_without_a_cuda_device_asking_for_one_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", fake_torch(Device(), available=False))
    with pytest.raises(WarplineError, match="no-gpu"):
        warpline.bench(lambda: None, device="cuda")
    result = warpline.bench(lambda: None, seconds=0.001)
    assert "torch finds no CUDA device" in result.notes[0].message


def test_what_cannot_be_asked_for_is_refused() -> None:
    with pytest.raises(UsageError, match="no-dtype"):
        warpline.bench(lambda: None, flops=1e9)
    with pytest.raises(UsageError, match="bad-dtype"):
        warpline.bench(lambda: None, flops=1e9, dtype="int3")
    with pytest.raises(UsageError, match="bad-seconds"):
        warpline.bench(lambda: None, seconds=0)
    with pytest.raises(UsageError, match="not-callable"):
        warpline.bench(3)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="bad-device"):
        warpline.bench(lambda: None, device="tpu")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (2_678_720, 2_680_128, "2.679 to 2.680 ms"),
        (182_100, 182_300, "182.1 to 182.3 µs"),
        (160, 161, "160.0 to 161.0 ns"),
    ],
)
def test_an_interval_shows_the_digits_in_which_its_ends_differ(low: float, high: float, text: str) -> None:
    assert span(low, high) == text


def test_events_are_on_the_device_of_the_inputs() -> None:
    device = Device()
    torch = fake_torch(device)
    entered: list[int] = []

    @contextlib.contextmanager
    def current(index: int) -> Iterator[None]:
        entered.append(index)
        yield

    torch.cuda.device = current
    tensor = Tensor(1)
    tensor.device = SimpleNamespace(index=1)
    subject = Subject("it", AlternatingCalls(lambda x: device.launch(50_000), [(tensor,)]), None)
    measure([subject], Settings(now=device.now, seconds=0.01), torch)
    assert entered == [1]


def test_the_package_is_what_is_called() -> None:
    assert warpline.bench is sys.modules["warpline.bench"]
    assert warpline.bench.compare is warpline.bench.api.compare
