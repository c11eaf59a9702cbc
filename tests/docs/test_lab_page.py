"""docs/lab-h200.json, which docs/lab.md shows, is a whole run of the lab on a GPU."""

from __future__ import annotations

from paths import ROOT

from warpline.lab.run import EXPERIMENTS
from warpline.lab.stored import read_results

RESULTS = ROOT / "docs" / "lab-h200.json"


def test_every_experiment_was_run_on_a_gpu() -> None:
    stored = read_results(RESULTS)
    assert (stored.sizes, [one.name for one in stored.experiments]) == ("full", list(EXPERIMENTS))
    assert [one.name for one in stored.experiments if one.not_run] == []
