"""Torch's two ways to allow TF32, also where a program mixes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from warpline.capture.precision import convolutions_in_tf32, matmuls_in_tf32
from warpline.capture.trial.changes import CHANGES

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = True


def test_matmuls_run_in_fp32_and_convolutions_in_tf32_by_default() -> None:
    assert not matmuls_in_tf32(torch)
    assert convolutions_in_tf32(torch)


def test_both_ways_are_read_where_a_program_uses_both() -> None:
    torch.set_float32_matmul_precision("high")
    assert matmuls_in_tf32(torch)
    torch.backends.cuda.matmul.allow_tf32 = False
    assert not matmuls_in_tf32(torch)


@pytest.mark.parametrize("place", ["adopt", "ready"])
def test_a_program_that_forbids_tf32_after_the_import_gets_it_before_its_first_step(place: str) -> None:
    change: Any = CHANGES["tf32"](torch)
    change.arm()
    torch.backends.cuda.matmul.allow_tf32 = False
    assert not change.proof()
    change.adopt(torch.nn.Linear(2, 2)) if place == "adopt" else change.ready()
    assert change.proof() == {"TF32 allowed for FP32 matmuls": 1}
