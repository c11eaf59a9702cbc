"""What the recording of a layer promises for changes of it: the recording is in the repository."""

from __future__ import annotations

import pytest
from paths import DATA

from warpline.lab.predictions import Forecast


@pytest.fixture(scope="module")
def forecast() -> Forecast:
    return Forecast(DATA / "kineto" / "layer_eager.json.gz")


def test_without_a_change_the_step_stays(forecast: Forecast) -> None:
    step = forecast.step_ns()
    assert step.low < step.expected < step.high


def test_a_fused_silu_saves_its_kernel(forecast: Forecast) -> None:
    """The SiLU kernel takes 25.2 µs of a step that the GPU sets."""
    saved = forecast.step_ns().expected - forecast.step_ns("fused_silu_mul").expected
    assert saved == pytest.approx(25_200, rel=0.1)


def test_one_matmul_for_two_saves_no_time_on_a_busy_gpu(forecast: Forecast) -> None:
    assert forecast.step_ns("one_matmul").expected == pytest.approx(forecast.step_ns().expected, rel=0.01)
