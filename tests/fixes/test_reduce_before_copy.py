"""Detours through the host on hand-made traces, with answers worked out on paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kineto_files import op
from small_programs import GEMM_BF16, STEPS, Body, Program, asked, judged

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


def mask(program: Program, first: str = "aten::full", size: int = 16 * MEGABYTE) -> None:
    """A tensor that two ops of the CPU make is copied to the device."""
    on_host(program, first, 700)
    on_host(program, "aten::triu", 1500)
    program.copy(UP, 1500, size)


def test_masks_that_the_cpu_makes_for_every_layer_are_made_by_the_device(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        for _ in range(4):
            product(program)
            mask(program)
        product(program)
        program.wait()

    # The GPU sets the pace: five products, and 16 MB written four times in some µs.
    assert step_us(tmp_path, body) == pytest.approx(5 * PRODUCT, rel=0.02)
    verdict = judged(tmp_path, body).verdict
    assert (verdict.cause, verdict.fix) == ("transfer", "reduce_before_copy")
    assert "makes tensors for the device" in verdict.sentence


@pytest.mark.parametrize(("first", "size"), [("aten::index", 16 * MEGABYTE), ("aten::full", 4096)])
def test_what_comes_from_tensors_of_the_host_or_is_small_is_left_alone(tmp_path: Path, first: str, size: int) -> None:
    def body(program: Program) -> None:
        product(program)
        mask(program, first, size)
        product(program)

    assert asked(tmp_path, body).trial("reduce_before_copy").changed == (0,)


def test_what_comes_before_the_first_kernel_of_a_step_is_its_batch(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        mask(program, "aten::randn")
        product(program)
        program.wait()

    assert asked(tmp_path, body).trial("reduce_before_copy").changed == (0,)
    assert judged(tmp_path, body).verdict.cause == "input"


@pytest.mark.parametrize(
    ("silence", "used"),
    [
        (100, False),  # 32 MB are given back to the system: no core reads them as fast
        (8_000, True),  # 4 GB/s: NumPy
        (400_000, False),  # 0.08 GB/s: Python, number by number
    ],
)
def test_a_silence_after_a_large_copy_is_a_pass_of_the_host_if_it_takes_as_long(
    tmp_path: Path, silence: float, used: bool
) -> None:
    def body(program: Program) -> None:
        product(program)
        program.copy(DOWN, 4000, 32 * MEGABYTE)
        program.python(silence)

    question = asked(tmp_path, body)
    assert question.trial("reduce_before_copy").changed == (STEPS if used else 0,)
    if used:
        assert question.ask("reduce_before_copy").new_step_ns.expected / 1e3 == pytest.approx(PRODUCT, rel=0.06)
        assert question.ask("reduce_before_copy").gain.low == 1.0  # it may be something else


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


@pytest.mark.parametrize(("size", "left"), [(64, PRODUCT), (16, PRODUCT + 2_000)])
def test_a_tensor_that_was_mapped_is_unmapped_after_the_op(tmp_path: Path, size: int, left: float) -> None:
    """64 MB may take 3.4 ms for that; 16 MB stay with the process, and what takes 2 ms is the program's own."""

    def body(program: Program) -> None:
        product(program)
        program.copy(DOWN, 4000, size * MEGABYTE)
        on_host(program, "aten::mean", 1000)
        program.python(2_000)

    assert step_us(tmp_path, body) == pytest.approx(left, rel=0.06)


def test_unmapping_a_tensor_is_no_pass_over_it(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        product(program)
        program.copy(DOWN, 4000, 64 * MEGABYTE)
        program.python(5_000)

    assert asked(tmp_path, body).trial("reduce_before_copy").changed == (0,)


def test_numpy_after_a_copy_is_no_loading_of_the_next_step_s_batch(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        program.copy(UP, 100, MEGABYTE)
        product(program)
        program.copy(DOWN, 4000, 32 * MEGABYTE)
        program.python(8_000)

    judgement = judged(tmp_path, body)
    assert (judgement.verdict.cause, judgement.verdict.fix) == ("transfer", "reduce_before_copy")
    assert "slow_input" not in [finding.rule for finding in judgement.findings]


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
