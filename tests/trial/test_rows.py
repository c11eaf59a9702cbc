"""Rows of an answer: what is compared with a prediction."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from warpline.capture.trial.results import LOSS
from warpline.capture.trial.use import ProgramUse
from warpline.estimate import Estimate
from warpline.trial.candidates import candidates
from warpline.trial.process import LookReport, ProcessReport, TimedWindow
from warpline.trial.rows import BASELINE, Measured, TrialRecord, row_of, timed_rounds


@pytest.mark.parametrize(("name", "fix"), [("tf32", "tf32"), ("cuda_graph", "cuda_graph")])
@pytest.mark.parametrize("error", ["", "did not apply: the program does not use a GPU"])
def test_a_change_that_is_only_a_part_of_its_fix_has_no_prediction(name: str, fix: str, error: str) -> None:
    expected = Estimate(2.0, 3.0, 4.0)
    record = TrialRecord(cast(Any, None), cast(Any, None), (), {name: error}, {fix: expected})
    (change,) = candidates([name])
    row = row_of([change], record, claims=1, is_fresh=False)
    assert (row.predicted is None) == bool(change.change.part) == (name == "cuda_graph")
    assert row.note == change.change.part
    assert row.why_not == (error or "not tried: the trial ended before")
    assert row.prediction_held is None


def report(*losses: float) -> dict[str, Any]:
    memory = dict.fromkeys(("gpu_bytes", "gpu_reserved_bytes", "gpu_free_bytes", "host_bytes"), 0)
    return {"results": {LOSS: [[loss] for loss in losses]}, "steps": 8, "proof": {}, "compile": {}, **memory}


def measured(name: str, *losses: float) -> Measured:
    proof = {"changed": 1}
    windows = tuple(TimedWindow(number, 0.01, False, 0, 0, proof, {}) for number in range(16))
    return Measured(name, 1, ProcessReport(**report(*losses)), windows, per_round=2)


@pytest.mark.parametrize(
    ("name", "random_ops", "same"), [("channels_last", 2, None), ("channels_last", 0, False), ("tf32", 2, False)]
)
def test_dropout_in_another_order_of_memory_says_nothing_of_the_results(name: str, random_ops: int, same: bool) -> None:
    use = ProgramUse(on_gpu=True, random_ops=random_ops)
    look = LookReport(ended=False, use=use, events=(), **report(2.0, 1.0))
    steps = cast(Any, SimpleNamespace(result=LOSS))
    record = TrialRecord(look, steps, (measured(BASELINE, 2.0, 1.0), measured(name, 2.2, 0.9)), {}, {})
    row = row_of(candidates([name]), record, claims=1, is_fresh=False)
    assert row.sameness is not None
    assert row.sameness.same is same


def test_a_round_is_the_mean_of_its_windows_and_none_where_one_compiled() -> None:
    def window(step_s: float, compiled: bool = False) -> TimedWindow:
        return TimedWindow(0, step_s, compiled, 0, 0, {}, {})

    windows = [window(1.0), window(2.0), window(3.0), window(5.0, compiled=True), window(4.0)]
    assert timed_rounds(windows, 1) == (1.0, 2.0, 3.0, None, 4.0)
    assert timed_rounds(windows, 2) == (1.5, None)  # the last round is not whole
