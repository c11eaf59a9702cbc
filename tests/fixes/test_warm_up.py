"""What a warm step of a program is that was only seen cold: hand-made programs, and cold starts held to the stopwatch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import kineto_files as files
import pytest
from kineto_files import Event

from warpline.findings.diagnosis import diagnose
from warpline.fixes.registry import question_about
from warpline.replay import WhatIf
from warpline.trace.open import open_trace

KERNEL = "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>, std::array<char*, 2ul> >"
STEPS = 4


class Loop:
    """A loop on one thread, written down as its profile; times in microseconds."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.now, self.number, self.free = 0.0, 0, 0.0

    def call(self, name: str, length: float = 3.0) -> int:
        self.number += 1
        self.events.append(files.call(name, self.now, length, self.number))
        self.now += length
        return self.number

    def launch(self, length: float, *, runs: bool = True, stream: int = 7) -> None:
        number = self.call("cudaLaunchKernel")
        if runs:
            self.work(length, number, stream)

    def work(self, length: float, number: int, stream: int = 7) -> None:
        begin = max(self.now + 4, self.free)
        self.free = begin + length
        self.events.append(files.kernel(KERNEL, begin, length, number, stream=stream))

    def op(self, name: str, *parts: float | tuple[float, bool], shapes: Any = None, stream: int = 7) -> None:
        """An op of CPU segments, each followed by a kernel of 10 µs; (time, False) for a capture."""
        start = self.now
        for part in parts:
            length, runs = part if isinstance(part, tuple) else (part, True)
            self.now += length
            self.launch(10, runs=runs, stream=stream)
        self.now += 1
        self.events.append(files.op(name, start, self.now - start, **({"Input Dims": shapes} if shapes else {})))

    def step(self, start: float) -> None:
        self.now = max(self.now, self.free) + 5
        self.events.append(files.annotation(f"ProfilerStep#{len(self.events)}", start, self.now - start))

    def asked(self, folder: Path) -> WhatIf:
        return question_about(open_trace(files.write(folder, self.events), cache=False))


def captured() -> Loop:
    """Each step rehearses two ops three times, captures them and replays the graph."""
    loop = Loop()
    for _ in range(STEPS):
        start = loop.now
        loop.op("aten::copy_", 8.0)  # the program's own: it is not captured
        for _ in range(3):
            for name in ("aten::mm", "aten::relu"):
                loop.op(name, 8.0, stream=13)
        loop.call("cudaDeviceSynchronize", max(loop.free - loop.now, 0) + 3)
        loop.op("aten::fill_", 8.0, stream=13)
        loop.call("cudaStreamBeginCapture")
        for name in ("aten::mm", "aten::relu"):
            loop.op(name, (300.0, False), stream=13)
        loop.call("cudaStreamEndCapture")
        loop.call("cudaGraphInstantiate", 400)
        loop.now += 5
        number = loop.call("cudaGraphLaunch", 200)
        for _ in range(2):
            loop.work(10, number)
        loop.step(start)
    return loop


def test_a_capture_goes_with_the_runs_that_rehearse_it(tmp_path: Path) -> None:
    prediction = captured().asked(tmp_path).ask("warm_up")
    # Left are the copy's kernel and the graph's two: no rehearsal, no capture, no graph to be made.
    assert prediction.new_step_ns.expected == pytest.approx(3 * 10_000, rel=0.02)
    assert prediction.gain.expected > 10


def test_a_step_with_everything_warm_is_no_longer_than_after_a_warm_up(tmp_path: Path) -> None:
    judgement = diagnose(open_trace(files.write(tmp_path, captured().events), cache=False)).judgement
    assert judgement is not None
    (finding,) = [finding for finding in judgement.findings if finding.fix == "warm_up"]
    # The rehearsals' kernels go as well: three are left, of 10 µs each.
    assert judgement.limits.row("cold_start").step_ns.expected == pytest.approx(finding.new_step_ns.expected, abs=1)
    assert finding.new_step_ns.expected == pytest.approx(3 * 10_000, rel=0.02)


def planned(shapes: list[list[list[int]]]) -> Loop:
    """Each step an op that plans for 400 µs five times, before the kernel it is for."""
    loop = Loop()
    for shape in shapes:
        start = loop.now
        loop.op("aten::fft_rfft", *[400.0] * 5, 8.0, shapes=shape)
        loop.op("aten::mul", 8.0)
        loop.step(start)
    return loop


def test_of_an_op_that_plans_only_what_follows_its_last_pause_is_left(tmp_path: Path) -> None:
    prediction = planned([[[size]] for size in range(100, 100 + STEPS)]).asked(tmp_path).ask("warm_up")
    # Five launches follow pauses or nothing; the fifth and the sixth stay, and the next op's kernel.
    assert prediction.new_step_ns.expected < 80_000
    assert prediction.gain.expected > 20


def test_a_library_that_asks_the_driver_while_it_plans_is_planning(tmp_path: Path) -> None:
    """cuDNN looks at the last error a hundred times while it chooses: 2 ms in pieces of 20 µs, with one launch."""
    loop = Loop()
    for size in range(100, 100 + STEPS):
        start = loop.now
        for _ in range(100):
            loop.now += 20
            loop.call("cudaPeekAtLastError", 0.2)
        loop.op("aten::cudnn_convolution", 8.0)
        inner = loop.events.pop()
        loop.events.append(files.op("aten::conv1d", start, loop.now - start, **{"Input Dims": [[1, size]]}))
        loop.events.append(inner)
        loop.op("aten::mul", 8.0)
        loop.step(start)
    prediction = loop.asked(tmp_path).ask("warm_up")
    assert prediction.gain.expected > 10


def test_an_op_that_is_as_slow_with_shapes_it_has_seen_is_not_cold(tmp_path: Path) -> None:
    prediction = planned([[[100]]] * STEPS).asked(tmp_path).ask("warm_up")
    assert prediction.gain.expected == pytest.approx(1.0)


def test_the_program_s_own_python_stays_when_the_first_step_is_warm_as_well(tmp_path: Path) -> None:
    loop = Loop()
    for step in range(STEPS):
        start = loop.now
        loop.now += 1_000
        loop.op("aten::mm", 50_000.0 if step == 0 else 8.0)
        loop.step(start)
    prediction = loop.asked(tmp_path).ask("warm_up")
    assert prediction.gain.expected > 5
    assert prediction.replayed_ns.low > 700_000


def test_a_long_step_that_has_more_to_do_is_not_cold(tmp_path: Path) -> None:
    """Every fourth step ends in an optimiser's, whose kernels are as long on a warm device."""
    loop = Loop()
    for step in range(STEPS):
        start = loop.now
        for _ in range(3):
            loop.op("aten::mm", 70.0)
        if step == 2:
            loop.work(5_000, loop.call("cudaLaunchKernel"))
        loop.step(start)
    prediction = loop.asked(tmp_path).ask("warm_up")
    assert not prediction.applies
    assert prediction.gain.expected == pytest.approx(1.0)


def thinking(pauses: list[float], *, twice: Sequence[int] = ()) -> Loop:
    """Steps of two ops, the first of which thinks for as long as told; some launch one more kernel."""
    loop = Loop()
    for step, pause in enumerate(pauses):
        start = loop.now
        loop.op("aten::mm", pause)
        loop.op("aten::relu", 40.0)
        if step in twice:
            loop.work(3, loop.call("cudaLaunchKernel"))
        loop.step(start)
    return loop


def test_steps_after_the_cold_one_are_taken_as_they_are_each_part_at_its_least(tmp_path: Path) -> None:
    cold = thinking([50_000.0, 55.0, 40.0, 48.0, 52.0]).asked(tmp_path).ask("warm_up").new_step_ns.expected
    warm = thinking([40.0] * 5).asked(tmp_path).bare.step_ns.expected
    # The costs of recording are estimated from each trace for itself.
    assert cold == pytest.approx(warm, rel=0.05)


@pytest.mark.parametrize(("waits", "gone"), [(2, 0), (6, 6)])
def test_an_op_that_waits_again_and_again_between_its_launches_tries_kernels(
    tmp_path: Path, waits: int, gone: int
) -> None:
    """Of those that it tries, the last wait's included, nothing is left; what it launches afterwards is what it is for."""
    loop = Loop()
    for step in range(5):
        start = loop.now
        loop.op("aten::mm", 50_000.0 if step == 0 else 8.0)
        begin = loop.now
        for _ in range(waits if step == 4 else 0):
            loop.launch(10)
            loop.call("cudaEventSynchronize", loop.free - loop.now + 5)
        loop.now += 8
        loop.launch(10)
        loop.now += 1
        loop.events.append(files.op("aten::cudnn_convolution", begin, loop.now - begin))
        loop.step(start)
    question = loop.asked(tmp_path)
    assert int(question.trial("warm_up").gone[question.labelled.step == 4].sum()) == gone


def test_steps_with_other_kernels_are_not_alike(tmp_path: Path) -> None:
    """From the third step on the code is another one, that is slower and no less warm."""
    mixed = thinking([50.0, 40.0, 50_000.0, 150.0, 140.0], twice=(2, 3, 4)).asked(tmp_path).ask("warm_up")
    one = thinking([40.0] * 5).asked(tmp_path).bare.step_ns.expected
    other = thinking([140.0] * 5, twice=range(5)).asked(tmp_path).bare.step_ns.expected
    assert mixed.new_step_ns.expected == pytest.approx((one + other) / 2, rel=0.05)


def test_code_that_each_step_compiles_runs_for_the_second_time(tmp_path: Path) -> None:
    loop = Loop()
    for _ in range(STEPS):
        start = loop.now
        loop.now += 20
        begin = loop.now
        loop.now += 200_000
        loop.events.append(files.op("dynamo", begin, loop.now - begin))
        region = loop.now
        loop.now += 300
        loop.call("cuLaunchKernel", 60)
        loop.work(3, loop.number)
        loop.now += 300
        loop.events.append(files.op("Torch-Compiled Region: 0/0", region, loop.now - region))
        loop.step(start)
    question = loop.asked(tmp_path)
    prediction = question.ask("warm_up")
    host = question.labelled.host
    # Guards and wrapper, one launch, and what follows it; in the worst case three times as much.
    dispatch = [sum(cost.at(case) for cost in (host.region, host.op, host.launch, host.call)) for case in range(3)]
    assert prediction.new_step_ns.expected == pytest.approx(dispatch[1], rel=0.1)
    assert prediction.replayed_ns.high == pytest.approx(3 * dispatch[2], rel=0.15)


def test_python_with_which_a_step_begins_is_there_in_the_warm_one_too(tmp_path: Path) -> None:
    steps = []
    for python in (30.0, 130.0):
        loop = Loop()
        for size in range(100, 100 + STEPS):
            start = loop.now
            loop.now += python
            loop.op("aten::fft_rfft", 5_000.0, shapes=[[size]])
            loop.step(start)
        steps.append(loop.asked(tmp_path).ask("warm_up").new_step_ns.expected)
    assert steps[1] - steps[0] == pytest.approx(100_000, rel=0.1)
