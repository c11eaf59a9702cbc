"""Which steps of a trace are judged."""

from __future__ import annotations

from pathlib import Path

import pytest
from kineto_files import write
from small_programs import H200, Program

from warpline.replay import judged_steps
from warpline.trace.open import open_trace


@pytest.mark.parametrize(("cold_us", "judged"), [(50_000, 5), (0, 2)])
def test_a_cold_step_is_judged_however_many_calls_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cold_us: float, judged: int
) -> None:
    program = Program()
    for number in range(5):
        with program.step():
            program.python(0 if number else cold_us)
            for _ in range(20):
                program.large_product(100)
            program.wait()
    monkeypatch.setattr(judged_steps, "ENOUGH_CALLS", 40)
    trace = open_trace(write(tmp_path, program.events, **H200), cache=False)
    assert len(judged_steps.steps_to_judge(trace).steps_in_view) == judged
