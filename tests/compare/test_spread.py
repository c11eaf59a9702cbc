"""Verdicts on made-up runs: false alarms, real changes, and how many runs would settle it."""

from __future__ import annotations

import numpy as np
import pytest

from warpline.compare.spread import Side, difference, drift, middle_mean

LEAST = 0.02
SPREAD = 0.004


def run(draw: np.random.Generator, typical: float, between: float, within: float = 0.01, steps: int = 20) -> Side:
    centre = typical * np.exp(draw.normal(0, between))
    return Side((np.rint(centre * np.exp(draw.normal(0, within, steps))).astype(np.int64),))


def test_runs_of_one_program_are_seldom_called_different() -> None:
    draw = np.random.default_rng(1)
    said = [difference(run(draw, 1e6, SPREAD), run(draw, 1e6, SPREAD), SPREAD, LEAST).verdict for _ in range(200)]
    assert said.count("slower") <= 2
    assert said.count("faster") <= 2


def test_a_slowdown_of_a_tenth_is_found() -> None:
    draw = np.random.default_rng(2)
    found = difference(run(draw, 1e6, SPREAD), run(draw, 1.1e6, SPREAD), SPREAD, LEAST)
    assert found.verdict == "slower"
    assert found.ratio.low < 1.1 < found.ratio.high
    assert difference(run(draw, 1.1e6, SPREAD), run(draw, 1e6, SPREAD), SPREAD, LEAST).verdict == "faster"


def test_several_runs_say_more_than_one() -> None:
    draw = np.random.default_rng(3)
    a, b = (Side(tuple(run(draw, typical, SPREAD).runs[0] for _ in range(8))) for typical in (1e6, 1e6))
    one, many = difference(Side(a.runs[:1]), Side(b.runs[:1]), SPREAD, LEAST), difference(a, b, SPREAD, LEAST)
    assert many.verdict == "same"
    assert many.ratio.high / many.ratio.low < one.ratio.high / one.ratio.low


def test_runs_that_differ_much_stay_inconclusive_and_say_how_many_more() -> None:
    draw = np.random.default_rng(4)
    a, b = (Side(tuple(run(draw, 1e6, 0.05).runs[0] for _ in range(2))) for _ in range(2))
    found = difference(a, b, SPREAD, LEAST)
    assert found.verdict == "inconclusive"
    assert found.more_runs is not None and found.more_runs > 0


def test_the_middle_mean_ignores_one_slow_step() -> None:
    assert middle_mean(np.array([10.0, 10, 10, 10, 10, 10, 10, 500])) == 10


def test_drift_is_a_trend_and_not_noise() -> None:
    noise = np.random.default_rng(5).normal(0, 1, 30)
    assert drift(np.linspace(100, 110, 30) + noise / 10, LEAST) == pytest.approx(0.07, abs=0.02)
    assert drift(100 + noise, LEAST) is None
