"""How predictions are judged: errors, ranges and the order of the rungs, worked out on paper."""

from __future__ import annotations

import pytest

from warpline.lab.model import LabRange
from warpline.lab.optimisation_ladder import RungOutcome, _seen
from warpline.lab.workbench import LoopTime


def outcome(name: str, step_ns: float, promised: tuple[float, float, float] | None = None) -> RungOutcome:
    time = LoopTime(step_ns, step_ns, step_ns, None, None)
    return RungOutcome(name, LabRange(*promised) if promised else None, time, ())


def test_the_error_is_that_of_the_step_time() -> None:
    """Promised 90 ns, measured 120 ns: the promise was a quarter too short."""
    missed = outcome("graph", 120, (80, 90, 100))
    assert missed.error == pytest.approx(-0.25)
    assert not missed.is_in_range
    assert outcome("graph", 120, (80, 90, 130)).is_in_range


def test_the_summary_counts_ranges_and_pairs_in_order() -> None:
    """Only the graph is outside its range (errors 17, 0 and 12.5 %); it is also behind compile, though promised less."""
    found = [
        outcome("eager", 220),
        outcome("graph", 120, (90, 100, 110)),
        outcome("fused", 80, (70, 80, 90)),
        outcome("compile", 112, (100, 126, 150)),
    ]
    said = _seen({"decode": found})
    assert "At decode the best rung is fused, 2.75× as fast as eager." in said
    assert "Of 3 predictions 2 hold the measured step in their range; their median error is 12 %" in said
    assert "2 of 3 pairs of rungs are in the order that was predicted" in said
