"""What the devices must still do after a fix, worked out on paper."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from small_programs import GEMM_FP32, MUL, SIDE_STREAM, Program, asked

from warpline.estimate import Estimate
from warpline.replay.bounds import DeviceWork, LeastStep, bounded

DECADES_NS = 4 * 10**18


def work(program: Program) -> None:
    """1,000 µs of FP32 product and 10 kernels of 5 µs, with 40 µs of CPU time before each of those."""
    program.op("aten::mm", (GEMM_FP32, 1000), shapes=[[2048, 2048], [2048, 2048]], dtype="float")
    for _ in range(10):
        program.op("aten::mul", (MUL, 5), cpu=40, shapes=[[64, 64]], dtype="float")
    program.wait()


def test_a_host_fix_leaves_all_of_the_device_s_work(tmp_path: Path) -> None:
    question = asked(tmp_path, work)
    bounds = DeviceWork(question)
    assert bounds.busy_ns == pytest.approx(1_050_000, rel=0.001)
    least = bounds.least_after(question.trial("cuda_graph"))
    assert least.expected_ns == pytest.approx(1_050_000, rel=0.001)
    assert least.lowest_ns == pytest.approx(0.9 * 1_050_000, rel=0.001)


def test_a_kernel_fix_leaves_the_rest_and_what_it_makes_of_its_own(tmp_path: Path) -> None:
    question = asked(tmp_path, work)
    trial = question.trial("tf32")
    product = question.labelled.kernels("gemm") & question.labelled.in_steps
    new = float(trial.duration[product].mean())
    assert new < 1_000_000
    least = DeviceWork(question).least_after(trial)
    assert least.expected_ns == pytest.approx(50_000 + new, rel=0.001)
    # At the lowest, the product takes no time at all: its work in TF32 is another's to bound.
    assert least.lowest_ns == pytest.approx(0.9 * 50_000, rel=0.001)


def test_the_same_work_is_never_faster_than_the_roofline(tmp_path: Path) -> None:
    question = asked(tmp_path, work)
    product = question.labelled.kernels("gemm") & question.labelled.in_steps
    trial = question.trial("cuda_graph")
    impossible = replace(trial, duration=trial.duration.copy())
    impossible.duration[product] = 1.0
    floor = float(question.labelled.floor_ns()[product].mean())
    assert 0 < floor < 1_000_000
    least = DeviceWork(question).least_after(impossible, same_work=True)
    assert least.expected_ns == pytest.approx(50_000 + floor, rel=0.001)


def test_steps_that_overlap_on_two_streams_are_not_counted_twice(tmp_path: Path) -> None:
    """Each step launches 900 µs on one stream and 900 µs on another, and the CPU never waits."""

    def body(program: Program) -> None:
        program.large_product(900)
        program.op("aten::mul", (MUL, 900), stream=SIDE_STREAM, shapes=[[4096, 4096]])

    bounds = DeviceWork(asked(tmp_path, body))
    assert bounds.busy_ns <= 1_000_000


def test_no_bound_is_longer_than_the_step(tmp_path: Path) -> None:
    question = asked(tmp_path, work)
    bounds = DeviceWork(question)
    for fix in ("cuda_graph", "tf32", "remove_sync"):
        assert bounds.least_after(question.trial(fix)).expected_ns <= question.bare.expected_ns


def test_a_prediction_is_held_to_the_bound(tmp_path: Path) -> None:
    question = asked(tmp_path, work)
    wild = replace(
        question.ask("cuda_graph"),
        old_step_ns=Estimate(9.0, 10.0, 11.0),
        new_step_ns=Estimate(0.5, 1.0, 2.0),
        gain=Estimate(5.0, 10.0, 20.0),
    )
    held = bounded(wild, LeastStep(4.0, 3.0))
    assert held.new_step_ns == Estimate(3.0, 4.0, 4.0)
    assert held.gain.expected == 2.5
    assert held.gain.low == 2.5
    assert held.gain.high == pytest.approx(11 / 3)
    assert bounded(wild, LeastStep(1.0, 0.5)) is wild


def test_what_a_fix_touches_is_timed(tmp_path: Path) -> None:
    question = asked(tmp_path, work)
    bounds = DeviceWork(question)
    assert bounds.touched_ns(question.trial("tf32")) == pytest.approx(1_000_000, rel=0.01)
    # Eleven launches take the CPU 574 µs; the wait begins then, and ends 3 µs after 1,065 µs of work.
    assert bounds.touched_ns(question.trial("remove_sync")) == pytest.approx(470_000, rel=0.1)


def test_work_that_is_decades_away_is_counted_like_any_other(tmp_path: Path) -> None:
    question = asked(tmp_path, work)
    last = int(np.flatnonzero(question.labelled.is_work & question.labelled.in_steps)[-1])
    for times in (question.labelled.graph.measured_start, question.labelled.graph.measured_end):
        times[last] += DECADES_NS
    assert DeviceWork(question).busy_ns == pytest.approx(1_050_000, rel=0.001)
