"""A history that is moved in every step to make room, on hand-made traces."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from small_programs import DIRECT_COPY, GEMM_BF16, Program, asked, judged

from warpline.replay.patterns.rolled_buffers import shifts

ROLL = "void at::native::roll_cuda_kernel<float>(float const*, float*, long, long, long, long, long, long)"
WHOLE, MOST, ROW = [4096, 1024], [4095, 1024], [1024]
Part = tuple[str, list[int], float, str]
"""An op, the shape of its first input, and its kernel with its length in µs; 0 for none."""


def body(*parts: Part) -> Callable[[Program], None]:
    """These ops, and a product of 200 µs."""

    def step(program: Program) -> None:
        for name, shape, length, kernel in parts:
            program.op(name, *([(kernel, length)] if length else []))
            program.events[-1]["args"]["Input Dims"] = [shape, []]
        program.op("aten::mm", (GEMM_BF16, 200))
        program.wait()

    return step


WRITTEN = (("aten::select", WHOLE, 0, ""), ("aten::copy_", ROW, 3, DIRECT_COPY))
ROLLED = ("aten::roll", WHOLE, 1000, ROLL)


@pytest.mark.parametrize(
    ("parts", "moves"),
    [
        ((ROLLED, *WRITTEN), 1),
        ((ROLLED, ("aten::index_copy_", WHOLE, 3, DIRECT_COPY)), 1),
        # Nothing is written, as between the windows of a network; or nearly everything.
        ((ROLLED, ("aten::clone", WHOLE, 900, DIRECT_COPY)), 0),
        ((ROLLED, ("aten::slice", WHOLE, 0, ""), ("aten::copy_", MOST, 900, DIRECT_COPY)), 0),
        # The row is written into another tensor.
        ((ROLLED, ("aten::select", [8, 1024], 0, ""), ("aten::copy_", ROW, 3, DIRECT_COPY)), 0),
        # past[:-1] = past[1:].clone(); past[-1] = new
        (
            (
                ("aten::slice", WHOLE, 0, ""),
                ("aten::clone", MOST, 500, DIRECT_COPY),
                ("aten::slice", WHOLE, 0, ""),
                ("aten::copy_", MOST, 500, DIRECT_COPY),
                *WRITTEN,
            ),
            2,
        ),
        # Half of a tensor put elsewhere is no shift.
        (
            (
                ("aten::clone", [2048, 1024], 500, DIRECT_COPY),
                ("aten::slice", WHOLE, 0, ""),
                ("aten::copy_", [2048, 1024], 500, DIRECT_COPY),
                *WRITTEN,
            ),
            0,
        ),
    ],
)
def test_a_shift_is_a_move_before_a_small_write(parts: tuple[Part, ...], moves: int, tmp_path: Path) -> None:
    labelled = asked(tmp_path, body(*parts)).labelled
    last = labelled.step == labelled.step_count - 1
    assert int((shifts(labelled) & last).sum()) == moves


def test_a_rolled_history_becomes_a_ring(tmp_path: Path) -> None:
    judgement = judged(tmp_path, body(ROLLED, *WRITTEN))
    assert judgement.verdict.fix == "preallocate"
    assert judgement.verdict.cause in {"memory", "kernel"}
    (found,) = [one for one in judgement.findings if one.fix == "preallocate"]
    assert "Buffers are moved again in every step: 1 shift of a whole buffer (1.00 ms)" in found.claim
    # 1,000 of 1,203 µs of GPU work go but for 3 %.
    assert judgement.verdict.new_step_ns is not None
    assert judgement.verdict.new_step_ns.expected < 300_000


@pytest.mark.parametrize(("length", "found"), [(3.0, True), (900.0, False)])
def test_without_ops_a_much_shorter_copy_follows_the_roll(length: float, found: bool, tmp_path: Path) -> None:
    def step(program: Program) -> None:
        program.op("aten::roll", (ROLL, 1000))
        program.copy("DtoD (Device -> Device)", length, 4096)
        program.op("aten::mm", (GEMM_BF16, 200))
        program.wait()

    program = Program()
    for _ in range(4):
        with program.step():
            step(program)
    program.events = [event for event in program.events if event.get("cat") != "cpu_op"]
    labelled = program.asked(tmp_path).labelled
    assert shifts(labelled).any() == found
