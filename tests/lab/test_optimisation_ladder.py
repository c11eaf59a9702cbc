"""How predictions are judged: errors, ranges and the order of the rungs, worked out on paper."""

from __future__ import annotations

import pytest

from warpline.lab.model import LabRange
from warpline.lab.optimisation_ladder import RungOutcome, _seen


def test_the_error_is_that_of_the_step_time() -> None:
    """Promised 2×, gained 1.5×: the step takes 4/3 of the time that was promised, so the promise was 25 % too short."""
    missed = RungOutcome("graph", LabRange(1.8, 2.0, 2.2), 1.5)
    assert missed.error == pytest.approx(-0.25)
    assert not missed.held
    assert RungOutcome("graph", LabRange(1.2, 2.0, 2.2), 1.5).held


def test_the_summary_counts_ranges_and_pairs_in_order() -> None:
    """Of graph, fused and compile only graph is outside its range; graph and compile are in the wrong order."""
    found = [
        RungOutcome("graph", LabRange(1.9, 2.0, 2.2), 1.5),
        RungOutcome("fused", LabRange(2.0, 2.2, 2.4), 2.2),
        RungOutcome("compile", LabRange(1.0, 1.6, 2.0), 1.8),
    ]
    said = _seen({"decode": found})
    assert "At decode the best rung is fused, 2.20× as fast as eager." in said
    assert "Of 3 predictions 2 hold the measured gain in their range; the median error of the step time is 12 %" in said
    assert "2 of 3 pairs of rungs are in the order that was predicted" in said
