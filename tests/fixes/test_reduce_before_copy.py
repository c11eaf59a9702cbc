"""Detours through the host on hand-made traces, with answers worked out on paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kineto_files import op
from small_programs import GEMM_BF16, STEPS, Body, Program, asked

UP, DOWN = "HtoD (Pageable -> Device)", "DtoH (Device -> Pageable)"
MEGABYTE = 1 << 20
PRODUCT = 1000.0


def step_us(folder: Path, body: Body) -> float:
    return asked(folder, body).ask("reduce_before_copy").new_step_ns.expected / 1e3


def product(program: Program) -> None:
    program.op("aten::mm", (GEMM_BF16, PRODUCT))


def on_host(program: Program, name: str, length: float, **arguments: Any) -> None:
    start = program.now
    program.python(length)
    program.events.append(op(name, start, length, **arguments))


STATES = [32, 256, 768]


@pytest.mark.parametrize(
    ("ops", "used"),
    [
        ([("aten::select", STATES)], True),  # states.cpu()[:, 0]
        ([("aten::select", STATES), ("aten::select", [32, 768])], True),  # states.cpu()[:, 0][0]
        ([("aten::select", STATES)] * 3, False),  # one after the other: all of them, it may be
        ([("aten::select", [1000])], False),  # of another tensor
        ([("aten::view", STATES)], False),  # takes all
        ([], False),
    ],
)
def test_a_part_that_the_host_takes_of_a_copied_tensor_is_all_that_is_wanted(
    tmp_path: Path, ops: list[tuple[str, list[int]]], used: bool
) -> None:
    def body(program: Program) -> None:
        product(program)
        program.copy(DOWN, 1500, 25 * MEGABYTE)
        program.events[-1]["args"]["Input Dims"] = [STATES, STATES, []]
        for name, shape in ops:
            on_host(program, name, 10, **{"Input Dims": [shape, [], []]})
        # What follows takes long to its launch, but is no work on the copied tensor.
        program.op("aten::mm", (GEMM_BF16, PRODUCT), cpu=120, shapes=[STATES, [768, 768]])

    question = asked(tmp_path, body)
    assert question.trial("reduce_before_copy").changed == (STEPS if used else 0,)
    if used:
        assert question.ask("reduce_before_copy").new_step_ns.expected / 1e3 == pytest.approx(2 * PRODUCT, rel=0.04)


def test_a_gap_after_a_large_copy_may_be_anything(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        product(program)
        program.copy(DOWN, 4000, 32 * MEGABYTE)
        program.python(8_000)

    assert asked(tmp_path, body).trial("reduce_before_copy").changed == (0,)


def test_what_python_does_after_the_op_stays(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        product(program)
        program.copy(DOWN, 4000, 64 * MEGABYTE)
        on_host(program, "aten::mean", 1000)
        program.python(2_000)

    assert step_us(tmp_path, body) == pytest.approx(PRODUCT + 2_000, rel=0.06)


@pytest.mark.parametrize(("size", "back"), [(32 * MEGABYTE, True), (64 * MEGABYTE, True), (MEGABYTE, False)])
def test_what_goes_to_the_host_and_back_stays_on_the_device(tmp_path: Path, size: int, back: bool) -> None:
    """As many numbers, also in double precision; a smaller tensor may be something else."""

    def body(program: Program) -> None:
        product(program)
        program.copy(DOWN, 4000, 32 * MEGABYTE)
        on_host(program, "aten::sort", 9000)
        program.copy(UP, 3000, size)
        product(program)
        program.wait()

    question = asked(tmp_path, body)
    assert question.trial("reduce_before_copy").gone.any() == back
    left = question.ask("reduce_before_copy").new_step_ns.expected / 1e3
    assert left == pytest.approx(2 * PRODUCT + (0 if back else 3000), rel=0.04)
