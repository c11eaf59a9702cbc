"""A cold first step among warm ones that keep the device busy."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_programs import CONV_LAST, Program


@pytest.mark.parametrize(("op", "cause"), [("aten::convolution", "cold_start"), (None, "dispatch")])
def test_an_op_that_takes_forty_milliseconds_once_is_cold_though_the_steps_are_long(
    tmp_path: Path, op: str | None, cause: str
) -> None:
    """Steps of 10 ms, the first of 50: the gain is 1.8, and nothing but its length says that the op was planning."""
    program = Program()
    for number in range(5):
        with program.step():
            if number == 0 and op:
                program.op(op, (CONV_LAST, 20), cpu=40_000)
            elif number == 0:
                program.python(40_000)
            for _ in range(10):
                program.large_product(1000)
            program.wait()
    assert program.judged(tmp_path).verdict.cause == cause
