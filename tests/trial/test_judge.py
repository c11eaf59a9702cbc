"""The gain of a variant, its range, and the verdict."""

from __future__ import annotations

import math
import random

import pytest

from warpline.estimate import Estimate
from warpline.trial.judge import CPU_SPREAD, GPU_SPREAD, MeasuredProcess, between_processes, gain_of, verdict_of_gain

BASE = "baseline"


def process(name: str, *steps: float | None, group: int = 1) -> MeasuredProcess:
    return MeasuredProcess(name, group, steps)


def gain(*processes: MeasuredProcess, name: str = "fix", rows: int = 1, on_gpu: bool = True) -> Estimate:
    found = gain_of(name, BASE, processes, rows, on_gpu)
    assert found is not None
    return found


def test_windows_are_compared_with_the_same_window_of_the_baseline() -> None:
    growing = gain(process(BASE, 1.0, 2.0, 4.0), process(BASE, 1.0, 2.0, 4.0), process("fix", 0.5, 1.0, 2.0))
    assert growing.expected == pytest.approx(2.0)


def test_one_disturbed_window_does_not_move_the_gain() -> None:
    disturbed = gain(process(BASE, *[1.0] * 6), process("fix", 0.5, 0.5, 5.0, 0.5, 0.5, 0.5))
    assert disturbed.expected == pytest.approx(2.0)


def test_a_window_with_a_compilation_does_not_count() -> None:
    found = gain(process(BASE, 1.0, 1.0, 1.0), process("fix", None, 0.5, 0.5))
    assert found.expected == pytest.approx(2.0)
    assert gain_of("fix", BASE, [process(BASE, 1.0), process("fix", None)], 1, on_gpu=True) is None


def test_each_group_is_compared_with_its_own_baselines() -> None:
    found = gain(
        process(BASE, 1.0, 1.0),
        process("fix", 0.5, 0.5),
        process(BASE, 3.0, 3.0, group=2),
        process("fix", 1.5, 1.5, group=2),
    )
    assert found.expected == pytest.approx(2.0)


def test_without_any_noise_the_usual_spread_between_processes_remains() -> None:
    spread, freedom = between_processes(BASE, [process(BASE, 1.0), process(BASE, 1.0)], on_gpu=True)
    assert freedom == 5
    assert spread == pytest.approx(GPU_SPREAD * math.sqrt(4 / 5))


def test_baselines_that_differ_widen_the_range() -> None:
    quiet = gain(process(BASE, 1.0, 1.0), process(BASE, 1.0, 1.0), process("fix", 0.9, 0.9))
    loud = gain(process(BASE, 1.0, 1.0), process(BASE, 1.2, 1.2), process("fix", 0.98, 0.98))
    assert loud.high / loud.low > quiet.high / quiet.low


def test_more_fixes_tried_make_each_range_wider() -> None:
    windows = process(BASE, 1.0, 1.0), process(BASE, 1.0, 1.0), process("fix", 0.9, 0.9)
    alone, among_many = gain(*windows), gain(*windows, rows=20)
    assert among_many.low < alone.low
    assert among_many.high > alone.high


def test_more_processes_make_the_range_narrower() -> None:
    once = [process(BASE, 1.0), process(BASE, 1.0), process("fix", 0.95)]
    twice = [*once, process(BASE, 1.0, group=2), process(BASE, 1.0, group=2), process("fix", 0.95, group=2)]
    assert gain(*twice).low > gain(*once).low


@pytest.mark.parametrize(
    ("low", "expected", "high", "verdict"),
    [
        (1.2, 1.3, 1.4, "faster"),
        (0.6, 0.7, 0.8, "slower"),
        (0.97, 1.0, 1.03, "same"),
        (0.9, 1.0, 1.1, "inconclusive"),
        (0.95, 1.1, 1.2, "inconclusive"),
        (1.001, 1.005, 1.009, "same"),
    ],
)
def test_the_verdict_follows_from_the_range(low: float, expected: float, high: float, verdict: str) -> None:
    assert verdict_of_gain(Estimate(low, expected, high)) == verdict


@pytest.mark.parametrize("on_gpu", [True, False])
def test_a_change_of_nothing_is_hardly_ever_called_faster(on_gpu: bool) -> None:
    """Twenty variants that change nothing, in 50 sessions, on a machine as noisy as is usual, with drift."""
    draw = random.Random(0)
    spread = GPU_SPREAD if on_gpu else CPU_SPREAD
    sessions = 40
    wrong = 0
    for _ in range(sessions):
        drift = [1 + 0.05 * math.sin(turn) for turn in range(6)]
        processes = []
        for name in [BASE, BASE, *(f"nothing={number}" for number in range(20))]:
            own = math.exp(draw.gauss(0, spread))
            processes.append(process(name, *(own * level * math.exp(draw.gauss(0, 0.01)) for level in drift)))
        gains = [gain(*processes, name=f"nothing={number}", rows=20, on_gpu=on_gpu) for number in range(20)]
        wrong += any(verdict_of_gain(one) == "faster" for one in gains)
    assert wrong <= 0.05 * sessions
