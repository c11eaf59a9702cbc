"""docs/lab-h200.json, which docs/lab.md shows, is a whole run of the lab on a GPU."""

from __future__ import annotations

import json

from paths import ROOT

from warpline.lab.model import LabValue
from warpline.lab.result_files import read_results
from warpline.lab.run import EXPERIMENTS
from warpline.units import duration, share, speedup

RESULTS = ROOT / "docs" / "lab-h200.json"
RECORDED = ROOT / "faults" / "recordings" / "planted" / "faults.json"
LESSONS = ROOT / "docs" / "lessons"


def stored_value(experiment: str, table: str, row: str, column: str) -> float:
    """A figure of the stored results."""
    tables = next(one for one in read_results(RESULTS).experiments if one.name == experiment).tables
    found = next(one for one in tables if one.name == table)
    place = [one.name for one in found.columns].index(column)
    value: LabValue = next(one for one in found.rows if one[0] == row)[place]
    assert isinstance(value, int | float)
    return float(value)


def test_every_experiment_was_run_on_a_gpu() -> None:
    stored = read_results(RESULTS)
    assert (stored.sizes, [one.name for one in stored.experiments]) == ("full", list(EXPERIMENTS))
    assert [one.name for one in stored.experiments if one.not_run] == []


def test_the_lesson_on_the_workflow_quotes_the_stored_ladder() -> None:
    rungs = ("CUDA graph", "graph, fused SiLU·mul", "graph, fused, two streams")
    shares = [share(stored_value("optimisation-ladder", "prefill", rung, "share"), 1) for rung in rungs]
    page = (LESSONS / "profiling_workflow.md").read_text(encoding="utf-8")
    start = page.index("as a CUDA graph takes")
    assert [text for text in shares if text in page[start : start + 300]] == shares


def test_the_lesson_on_dispatch_quotes_the_stored_times() -> None:
    page = " ".join((LESSONS / "dispatch_budget.md").read_text(encoding="utf-8").split())
    add, matmul = (
        duration(stored_value("dispatch", "layers", layer, "time_ns")) for layer in ("new result", "library")
    )
    assert f"{add} for an addition and {matmul} for a matmul" in page
    cases = {case["name"]: case for case in json.loads(RECORDED.read_text(encoding="utf-8"))["cases"]}
    timed = cases["synchronize_after_every_layer"]["bare_step_ns"]
    before, after = (timed[side]["step_ns"] for side in ("faulty", "fixed"))
    assert f"{duration(before)} become {duration(after)}: {speedup(before / after)}" in page
