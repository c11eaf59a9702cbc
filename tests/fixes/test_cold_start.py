"""Cold starts: a cold first step among warm ones, and a recording without steps."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_programs import CONV_LAST, GEMM_BF16, MUL, Program

from warpline.estimate import Estimate


@pytest.mark.parametrize("op", ["aten::convolution", None])
def test_a_first_step_that_takes_forty_milliseconds_more_is_lost_once(tmp_path: Path, op: str | None) -> None:
    """Steps of 10 ms, the first of 50: the step is one of 10 ms, and no fix may count the 40."""
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
    judgement = program.judged(tmp_path)
    assert judgement.evidence.step_ns == pytest.approx(10_000_000, rel=0.01)
    (finding,) = [finding for finding in judgement.findings if finding.rule == "cold_start"]
    assert finding.gain == Estimate.exactly(1.0)
    assert finding.once_ns == pytest.approx(40_000_000, rel=0.01)
    assert finding.gain_words == "40.0 ms once"
    assert finding.new_step_ns.expected == pytest.approx(10_000_000, rel=0.01)
    assert "40.0 ms more than warm ones take" in finding.claim
    assert "lost once" in finding.claim
    assert judgement.verdict.cause in {"healthy", "unclear"}  # the kernels lie below the roofline
    assert judgement.plan == []
    assert not judgement.is_past_the_steps


def test_a_recording_of_a_cold_start_gains_what_a_stopwatch_over_its_steps_shows(tmp_path: Path) -> None:
    """Five steps of 10 ms, the first with 200 ms more: 250 ms over five are 50 ms a step, five times a warm one."""
    program = Program()
    for number in range(5):
        with program.step():
            if number == 0:
                program.op("aten::convolution", (CONV_LAST, 20), cpu=200_000)
            for _ in range(10):
                program.large_product(1000)
            program.wait()
    judgement = program.judged(tmp_path)
    verdict = judgement.verdict
    assert (verdict.cause, verdict.fix) == ("cold_start", "warm_up")
    assert verdict.gain.expected == pytest.approx(5.0, rel=0.03)
    assert verdict.gain.low < 5.0 < verdict.gain.high
    assert verdict.new_step_ns is not None
    assert verdict.new_step_ns.expected == pytest.approx(10_000_000, rel=0.01)
    assert "all 5 recorded steps together would take 50.0 ms instead of 250 ms" in verdict.sentence
    assert judgement.is_past_the_steps  # a replay of the warm steps has no number for it
    # The finding counts from the warm steps, as all others do.
    (finding,) = [finding for finding in judgement.findings if finding.rule == "cold_start"]
    assert finding.gain.expected == pytest.approx(1.0)


def test_a_recording_without_steps_counts_only_what_is_known_to_load(tmp_path: Path) -> None:
    """Two kernels of known code, a module loaded for 30 ms between them, and an op that thinks for 5 ms."""
    program = Program()
    program.op("aten::mm", (GEMM_BF16, 100))
    program.call("cuModuleLoadData", 30_000)
    program.op("aten::mul", (MUL, 100), cpu=5_000)
    program.wait()
    judgement = program.judged(tmp_path)
    verdict = judgement.verdict
    assert (verdict.cause, verdict.fix) == ("cold_start", "warm_up")
    assert verdict.new_step_ns is not None
    assert verdict.new_step_ns.expected == pytest.approx(5_100_000, rel=0.05)
    # The 30 ms go in any case, so that a gain is certain; the op's 5 ms may be cold, too, and a slow host needs longer.
    assert 5_100_000 < verdict.new_step_ns.high < 8_000_000
    assert 4 < verdict.gain.low < 35.1 / 5.1
