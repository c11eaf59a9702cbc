"""How time grows with the shape, and the reason that the measurements show."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from typing import Any

import pytest

from warpline.bench.command import BenchRequest, answer
from warpline.bench.scaling import scalings

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


class Fake:
    """A result with what scaling reads."""

    def __init__(
        self, name: str, flops: float, time_ns: float, bound: str = "compute", mhz: int | None = None, submit: float = 0
    ) -> None:
        work = type("Work", (), {"flops": flops, "bytes": flops / 1000, "dtype": "tf32"})
        self.name, self.median_ns = name, time_ns
        self.judgement = type("Judgement", (), {"work": work, "bound": bound, "roof_pct": 50.0})
        self.clocks = type("Clocks", (), {"min_sm_mhz": mhz}) if mhz else None
        self.host = type("Host", (), {"submit_ns": submit}) if submit else None


def sentence(*results: Any) -> str:
    (found,) = scalings(results)
    return found.sentence


SMALL = Fake("matmul 4096", 2 * 4096**3, 3_692_000)


def test_the_seeds_8192_against_4096() -> None:
    """31.139 ms against 3.692 ms: 8.43 times the time for 8 times the work."""
    (found,) = scalings((SMALL, Fake("matmul 8192", 2 * 8192**3, 31_139_000)))  # type: ignore[arg-type]
    assert found.work_ratio == 8
    assert round(found.time_ratio, 2) == 8.43
    assert (
        "8.00× the FLOPs of matmul 4096 and takes 8.43× the time: the larger one runs at a lower rate" in found.sentence
    )


def test_reasons_that_the_measurements_show() -> None:
    eight = 2 * 8192**3
    assert "as the work does" in sentence(SMALL, Fake("8192", eight, 8 * 3_692_000))
    assert "does not fill the device" in sentence(SMALL, Fake("8192", eight, 4 * 3_692_000))
    slow = Fake("4096", 2 * 4096**3, 1000, submit=5000)
    assert "longer to submit than to run" in sentence(slow, Fake("8192", eight, 4000))
    warm = Fake("4096", 2 * 4096**3, 1_000_000, mhz=1980)
    assert "from 1,980 to 1,500 MHz" in sentence(warm, Fake("8192", eight, 12_000_000, mhz=1500))
    memory = Fake("4096", 2 * 4096**3, 1_000_000, bound="memory")
    assert "bound by memory and the larger by arithmetic" in sentence(memory, Fake("8192", eight, 4_000_000))


def test_the_order_of_the_shapes_does_not_change_the_reason() -> None:
    large = Fake("8192", 2 * 8192**3, 4 * 3_692_000)
    assert "the smaller one does not fill" in sentence(large, SMALL)


def test_other_types_and_the_same_shape_are_not_compared() -> None:
    other = Fake("4096", 2 * 4096**3, 1000)
    other.judgement.work.dtype = "bf16"
    assert scalings((SMALL, other)) == []  # type: ignore[arg-type]
    assert scalings((SMALL, SMALL)) == []  # type: ignore[arg-type]


@needs_torch
def test_several_shapes_on_the_cpu() -> None:
    request = BenchRequest("matmul", ("16", "32"), ("fp32",), seconds=0.01, device="cpu")
    found = answer(request)
    assert [result.name for result in found.results] == ["matmul 16x16x16 fp32", "matmul 32x32x32 fp32"]
    assert found.to_dict()["scaling"][0]["work_ratio"] == 8
    assert "8.00× the FLOPs" in str(found)
    assert replace(request, shapes=()).shapes == ()
