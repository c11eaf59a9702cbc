"""The gain of a variant, its range, and the verdict."""

from __future__ import annotations

import math
import random

import pytest

from warpline.estimate import Estimate
from warpline.trial.judge import (
    CPU_SPREAD,
    EARLY_TAIL,
    GPU_SPREAD,
    MeasuredGain,
    MeasuredProcess,
    between_processes,
    gain_of,
)

BASE = "baseline"


def process(name: str, *steps: float | None, group: int = 1) -> MeasuredProcess:
    return MeasuredProcess(name, group, steps)


def measured(*processes: MeasuredProcess, name: str = "fix", on_gpu: bool = True) -> MeasuredGain:
    found = gain_of(name, BASE, processes, on_gpu)
    assert found is not None
    return found


def gain(*processes: MeasuredProcess) -> Estimate:
    return measured(*processes).estimate()


def test_windows_are_compared_with_the_same_window_of_the_baseline() -> None:
    growing = gain(process(BASE, 1.0, 2.0, 4.0), process(BASE, 1.0, 2.0, 4.0), process("fix", 0.5, 1.0, 2.0))
    assert growing.expected == pytest.approx(2.0)


def test_one_disturbed_window_does_not_move_the_gain() -> None:
    disturbed = gain(process(BASE, *[1.0] * 8), process("fix", 0.5, 0.5, 5.0, 0.5, 0.5, 0.5, 0.5, 0.5))
    assert disturbed.expected == pytest.approx(2.0)


def test_a_window_with_a_compilation_does_not_count() -> None:
    found = gain(process(BASE, *[1.0] * 4), process("fix", None, 0.5, 0.5, 0.5))
    assert found.expected == pytest.approx(2.0)


def test_a_few_windows_say_nothing() -> None:
    assert gain_of("fix", BASE, [process(BASE, 1.0, 1.0), process("fix", 0.5, 0.5)], on_gpu=True) is None


def test_a_few_windows_of_a_disturbed_machine_decide_nothing() -> None:
    """Windows of a program that changed nothing, while other programs took the CPU now and then."""
    windows = [(37.8, 40.3, 38.6, 12.4), (30.0, 18.0, 39.4, 27.4), (11.3, 24.0, 31.4, 10.4)]
    nothing = process("fix", 35.5, 42.0, 23.6, 31.9)
    assert measured(*(process(BASE, *one) for one in windows), nothing).verdict() == "inconclusive"


def test_each_group_is_compared_with_its_own_baselines() -> None:
    found = gain(
        process(BASE, *[1.0] * 3),
        process("fix", *[0.5] * 3),
        process(BASE, *[3.0] * 3, group=2),
        process("fix", *[1.5] * 3, group=2),
    )
    assert found.expected == pytest.approx(2.0)


def test_without_any_noise_the_usual_spread_between_processes_remains() -> None:
    spread, freedom = between_processes(BASE, [process(BASE, 1.0), process(BASE, 1.0)], on_gpu=True)
    assert freedom == 5
    assert spread == pytest.approx(GPU_SPREAD * math.sqrt(4 / 5))


def test_baselines_that_differ_widen_the_range() -> None:
    quiet = gain(process(BASE, *[1.0] * 3), process(BASE, *[1.0] * 3), process("fix", *[0.9] * 3))
    loud = gain(process(BASE, *[1.0] * 3), process(BASE, *[1.2] * 3), process("fix", *[0.98] * 3))
    assert loud.high / loud.low > quiet.high / quiet.low


def test_more_processes_make_the_range_narrower() -> None:
    once = [process(BASE, *[1.0] * 3), process(BASE, *[1.0] * 3), process("fix", *[0.95] * 3)]
    again = [
        process(BASE, *[1.0] * 3, group=2),
        process(BASE, *[1.0] * 3, group=2),
        process("fix", *[0.95] * 3, group=2),
    ]
    twice = [*once, *again]
    assert gain(*twice).low > gain(*once).low


@pytest.mark.parametrize(
    ("percent", "error", "verdict"),
    [
        (30, 2.0, "faster"),
        (-30, 2.0, "slower"),
        (0, 1.0, "no_gain"),
        (-2, 1.5, "no_gain"),
        (0, 5.0, "inconclusive"),
        (10, 8.0, "inconclusive"),
        (0.5, 0.1, "no_gain"),
    ],
)
def test_the_verdict_follows_from_the_range(percent: float, error: float, verdict: str) -> None:
    """With many degrees of freedom, the range ends about two standard errors from the gain."""
    assert MeasuredGain(percent / 100, error / 100, 1000).verdict() == verdict


def test_a_claim_of_a_difference_needs_more_among_many_and_before_the_end() -> None:
    found = MeasuredGain(0.03, 0.0125, 1000)
    assert found.verdict() == "faster"
    assert found.verdict(claims=20) == "inconclusive"
    assert found.verdict(EARLY_TAIL) == "inconclusive"


def test_that_there_is_no_gain_is_a_matter_of_one_row() -> None:
    found = MeasuredGain(-0.02, 0.015, 1000)
    assert found.verdict(claims=1) == found.verdict(claims=20) == "no_gain"


@pytest.mark.parametrize("on_gpu", [True, False])
def test_a_change_of_nothing_is_hardly_ever_called_faster(on_gpu: bool) -> None:
    """Ten variants that change nothing, in 40 sessions, on a machine as noisy as is usual, with drift."""
    draw = random.Random(0)
    spread = GPU_SPREAD if on_gpu else CPU_SPREAD
    names = [f"nothing={number}" for number in range(10)]

    def group(number: int, tried: list[str]) -> list[MeasuredProcess]:
        drift = [1 + 0.05 * math.sin(turn) for turn in range(8)]
        found = []
        for name in [BASE] * 3 + tried:
            own = math.exp(draw.gauss(0, spread))
            windows = (own * level * math.exp(draw.gauss(0, 0.02)) for level in drift)
            found.append(process(name, *windows, group=number))
        return found

    wrong = 0
    for _ in range(40):
        first = group(1, names)
        chosen = [name for name in names if measured(*first, name=name, on_gpu=on_gpu).estimate().low > 1]
        fresh = group(2, chosen)
        again = [measured(*fresh, name=name, on_gpu=on_gpu).verdict(claims=len(chosen)) for name in chosen]
        wrong += "faster" in again
    assert wrong <= 1
