"""Verdicts on made-up runs: false alarms, real changes, and how many runs would settle it."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from warpline.compare.spread import (
    BUSY_SPREAD,
    IDLE_SPREAD,
    RunTime,
    Side,
    _will_be_apart,
    difference,
    drift,
    verdict_of,
)
from warpline.estimate import Estimate

LEAST = 0.02


def runs(draw: np.random.Generator, number: int, busy: float, idle: float, spread: float = BUSY_SPREAD) -> Side:
    """Runs whose work and waits differ as is usual, and whose steps vary by 1 %."""
    made = []
    for _ in range(number):
        work, wait = busy * np.exp(draw.normal(0, spread)), idle * np.exp(draw.normal(0, IDLE_SPREAD))
        lengths = np.rint((work + wait) * np.exp(draw.normal(0, 0.01, 20))).astype(np.int64)
        made.append(RunTime(work, wait, lengths))
    return tuple(made)


@pytest.mark.parametrize("idle", [1e4, 1e6])
def test_runs_of_one_program_are_seldom_called_different(idle: float) -> None:
    draw = np.random.default_rng(1)
    said = [difference(runs(draw, 1, 1e6, idle), runs(draw, 1, 1e6, idle), LEAST).verdict for _ in range(50)]
    assert said.count("slower") <= 1
    assert said.count("faster") <= 1


def test_a_fifth_more_work_is_found_in_single_runs() -> None:
    draw = np.random.default_rng(2)
    found = difference(runs(draw, 1, 1e6, 1e4), runs(draw, 1, 1.2e6, 1e4), LEAST)
    assert found.verdict == "slower"
    assert found.ratio.low < 1.2 < found.ratio.high
    assert difference(runs(draw, 1, 1.2e6, 1e4), runs(draw, 1, 1e6, 1e4), LEAST).verdict == "faster"


def test_removed_waits_are_found_in_single_runs_though_waits_differ_much() -> None:
    draw = np.random.default_rng(3)
    found = difference(runs(draw, 1, 4e5, 5e5), runs(draw, 1, 4e5, 3e4), LEAST)
    assert (found.verdict, found.judged_by) == ("faster", "step")


def test_several_runs_say_more_than_one() -> None:
    draw = np.random.default_rng(4)
    a, b = (runs(draw, 12, 1e6, 1e4, BUSY_SPREAD / 4) for _ in range(2))
    one, many = difference(a[:1], b[:1], LEAST), difference(a, b, LEAST)
    assert many.verdict == "same"
    assert many.ratio.high / many.ratio.low < one.ratio.high / one.ratio.low


def test_waits_leave_it_inconclusive_and_say_how_many_more_while_the_work_is_known() -> None:
    draw = np.random.default_rng(5)
    found = difference(runs(draw, 1, 1e6, 2e6), runs(draw, 1, 1.3e6, 2e6), LEAST)
    assert (found.verdict, found.judged_by) == ("inconclusive", "step")
    assert found.more_runs is not None and found.more_runs > 0
    assert found.work_ratio.low > 1


def test_the_cpu_may_run_ahead_in_some_runs_and_not_in_others() -> None:
    """Where it does not, the step took it as long: 30 ms here and about 30 ms there, not 30 ms and nothing."""
    draw = np.random.default_rng(8)
    ahead = [replace(run, ahead_ns=0.9 * float(run.lengths_ns[0])) for run in runs(draw, 4, 2e7, 1e7)]
    sides = [(*ahead, *runs(draw, 5, 2e7, 1e7)), runs(draw, 9, 2e7, 1e7)]
    for a, b in (sides, sides[::-1]):
        found = difference(a, b, LEAST)
        assert 0.6 < found.ratio.low < 1 < found.ratio.high < 1.6


def test_more_runs_must_be_enough_for_the_rank_test_too() -> None:
    assert _will_be_apart(None, 2.0)
    assert _will_be_apart(0.01, 1.1)
    assert not _will_be_apart(0.05, 1.5)  # 1.96 × √1.5 = 2.40, and 1 % needs 2.58
    assert _will_be_apart(0.05, 2.0)  # 1.96 × √2 = 2.77
    assert not _will_be_apart(1.0, 40.0)


def test_work_decides_where_it_is_most_of_the_step_and_waits_leave_the_step_open() -> None:
    draw = np.random.default_rng(5)
    found = difference(runs(draw, 1, 1e6, 5e5), runs(draw, 1, 1.3e6, 5e5), LEAST)
    assert (found.verdict, found.judged_by) == ("slower", "work")
    assert found.ratio.low < 1 < found.work_ratio.low < 1.3 < found.work_ratio.high


def test_a_known_change_is_one_though_it_may_be_smaller_than_the_least_effect() -> None:
    assert verdict_of(Estimate(1.005, 1.015, 1.025), LEAST) == "slower"
    assert verdict_of(Estimate(0.97, 0.985, 0.999), LEAST) == "faster"
    assert verdict_of(Estimate(1.005, 1.01, 1.015), LEAST) == "same"
    assert verdict_of(Estimate(0.99, 1.01, 1.03), LEAST) == "inconclusive"


def test_a_disturbed_run_does_not_decide() -> None:
    draw = np.random.default_rng(6)
    calm = runs(draw, 9, 1e6, 1e4, BUSY_SPREAD / 4)
    disturbed = (*calm[:8], RunTime(2e6, 1e6, np.full(6, 3_000_000)))
    assert difference(calm, disturbed, LEAST).ratio.expected == pytest.approx(1, abs=0.01)


def test_a_cpu_that_was_ahead_may_fall_behind_in_the_next_run() -> None:
    def one(ahead_ns: float, step_ns: float) -> Side:
        return (RunTime(1e6, step_ns - 1e6, np.full(6, int(step_ns)), ahead_ns=ahead_ns),)

    assert difference(one(0.0, 1.01e6), one(0.0, 1.3e6), LEAST).verdict == "slower"
    assert difference(one(0.9e6, 1.01e6), one(1.25e6, 1.3e6), LEAST).verdict == "inconclusive"


def test_slower_copies_from_the_host_are_no_slower_work() -> None:
    def some(copies_ns: float) -> Side:
        lengths = np.full(6, int(1.2e6 + copies_ns))
        return (RunTime(1.2e6, 1.0, lengths, copies_ns=copies_ns),)

    found = difference(some(3e5), some(4e5), LEAST)
    assert found.verdict == "inconclusive"
    assert found.work_ratio.expected == 1


def test_drift_is_a_trend_and_not_noise() -> None:
    noise = np.random.default_rng(5).normal(0, 1, 30)
    assert drift(np.linspace(100, 110, 30) + noise / 10, LEAST) == pytest.approx(0.07, abs=0.02)
    assert drift(100 + noise, LEAST) is None


def test_equal_step_times_do_not_weaken_few_steps() -> None:
    a = (RunTime(100_000.0, 1_000_000.0, np.array([1_200_000, 1_200_000, 1_264_000, 1_270_000, 1_300_000])),)
    b = (RunTime(100_000.0, 10_000.0, np.array([110_000, 112_000, 112_000, 113_000, 115_000])),)
    assert difference(a, b, 0.02).verdict == "faster"
