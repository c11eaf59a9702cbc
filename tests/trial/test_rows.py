"""Rows of an answer: what is compared with a prediction."""

from __future__ import annotations

from typing import Any, cast

import pytest

from warpline.estimate import Estimate
from warpline.trial.candidates import candidates
from warpline.trial.rows import TrialRecord, row_of


@pytest.mark.parametrize(("name", "fix"), [("tf32", "tf32"), ("cuda_graph", "cuda_graph")])
@pytest.mark.parametrize("error", ["", "did not apply: the program does not use a GPU"])
def test_a_change_that_is_only_a_part_of_its_fix_has_no_prediction(name: str, fix: str, error: str) -> None:
    expected = Estimate(2.0, 3.0, 4.0)
    record = TrialRecord(cast(Any, None), cast(Any, None), (), {name: error}, {fix: expected})
    (change,) = candidates([name])
    row = row_of([change], record, claims=1, is_fresh=False)
    assert (row.predicted is None) == bool(change.change.part) == (name == "cuda_graph")
    assert row.note == change.change.part
    assert row.why_not == (error or "not tried: the budget ended")
    assert row.prediction_held is None
