"""Change points: levels that are certain are found at their place, and noise has none."""

from __future__ import annotations

import numpy as np
import pytest

from warpline.compare.change_points import MAX_POINTS, MIN_POINTS, levels


def noisy(count: int, seed: int) -> np.ndarray:
    return 100 * np.exp(0.01 * np.random.default_rng(seed).standard_normal(count))


def starts(values: object, least_effect: float = 0.02) -> list[int]:
    return [level.start for level in levels(values, least_effect)]  # type: ignore[arg-type]


def test_a_new_level_begins_where_it_begins() -> None:
    values = noisy(30, 1)
    values[18:] *= 1.1
    found = levels(values, 0.02)
    assert [level.start for level in found] == [0, 18]
    assert found[1].median / found[0].median == pytest.approx(1.1, rel=0.02)
    assert found[-1].stop == 30


def test_a_slowdown_that_was_taken_back_has_two_ends() -> None:
    values = noisy(40, 2)
    values[15:25] *= 1.2
    assert starts(values) == [0, 15, 25]


def test_noise_has_no_change() -> None:
    assert [seed for seed in range(60, 90) if starts(noisy(24, seed), 0.0) != [0]] == []


def test_one_outlier_is_no_change() -> None:
    values = noisy(20, 3)
    values[10] = 500
    assert starts(values) == [0]


def test_a_change_that_does_not_matter_is_none() -> None:
    values = noisy(60, 4)
    values[30:] *= 1.015
    assert starts(values, 0.0) != [0]
    assert starts(values, 0.05) == [0]


@pytest.mark.parametrize("count", [0, 1, MIN_POINTS - 1])
def test_few_points_give_no_answer(count: int) -> None:
    values = [1.0] * (count // 2) + [2.0] * (count - count // 2)
    assert starts(values) == ([0] if count else [])


def test_equal_values_and_zeros_have_one_level() -> None:
    assert starts([0.0] * 50) == [0]
    assert starts([0.0] * 20 + [1.0] * 20) == [0, 20]


def test_only_the_last_points_are_searched() -> None:
    values = np.concatenate([np.full(100, 50.0), noisy(MAX_POINTS, 5)])
    assert starts(values) == [0]
