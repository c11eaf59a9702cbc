"""What the recording of a layer promises for changes of it: the recording is in the repository."""

from __future__ import annotations

import pytest
from paths import DATA

from warpline.lab.model import LabRange
from warpline.lab.predictions import Forecast


@pytest.fixture(scope="module")
def forecast() -> Forecast:
    return Forecast(DATA / "kineto" / "layer_eager.json.gz")


def test_no_change_gains_nothing(forecast: Forecast) -> None:
    assert forecast.gain() == LabRange(1.0, 1.0, 1.0)


def test_a_fused_silu_saves_its_kernel(forecast: Forecast) -> None:
    """The SiLU kernel takes 25.2 µs of a step of 1.24 ms: 1.02 times as fast."""
    assert 1.01 < forecast.gain("fused_silu_mul").expected < 1.03


def test_one_matmul_for_two_saves_no_time_on_a_busy_gpu(forecast: Forecast) -> None:
    assert forecast.gain("one_matmul").expected == pytest.approx(1.0, abs=0.01)
