"""The lab as a whole: which experiments run where, what a failing one leaves behind, and what is written."""

from __future__ import annotations

import json

import pytest

from warpline.cli.main import run
from warpline.errors import UsageError
from warpline.lab import run as runner
from warpline.lab.model import LabColumn, LabExperiment, LabRange, LabTable, Observation
from warpline.lab.run import EXPERIMENTS, chosen, run_experiments
from warpline.lab.workbench import Workbench

pytest.importorskip("torch")


def table(lab: Workbench) -> LabTable:
    size = lab.sized(4096, 8)
    columns = (LabColumn("size", "size", "count"), LabColumn("gain", "gain", "gain"))
    return LabTable("sizes", "Sizes", columns, ((size, LabRange(1.0, 1.5, 2.0)),))


def works(lab: Workbench) -> Observation:
    assert lab.attempt("a row", lambda: 1 // 0) is None
    return Observation("it works", "because", (table(lab),))


def breaks(lab: Workbench) -> Observation:
    raise RuntimeError("out of\nmemory")


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    toys = (
        LabExperiment("breaks", "?", breaks),
        LabExperiment("needs", "?", works, needs_gpu=True),
        LabExperiment("works", "?", works),
    )
    monkeypatch.setattr(runner, "EXPERIMENTS", {toy.name: toy for toy in toys})


@pytest.mark.usefixtures("toys")
def test_an_experiment_that_fails_leaves_the_others_alone() -> None:
    broken, needing, working = run_experiments(["all"], device="cpu").experiments
    assert broken.not_run == "RuntimeError: out of memory"
    assert needing.not_run == "it needs a GPU"
    assert (working.seen, working.not_run) == ("it works", "")
    assert working.notes == ("a row: ZeroDivisionError: integer division or modulo by zero",)


@pytest.mark.usefixtures("toys")
def test_sizes_are_small_on_a_cpu_and_rows_are_objects() -> None:
    document = run_experiments(["works"], device="cpu").to_dict()
    assert (document["schema"], document["sizes"], document["cuda"]) == ("warpline.lab/1", "small", None)
    (found,) = document["experiments"][0]["tables"]
    assert found["rows"] == [{"size": 8, "gain": {"low": 1.0, "expected": 1.5, "high": 2.0}}]


def test_experiments_run_in_the_order_of_the_list_whatever_is_typed() -> None:
    names = list(EXPERIMENTS)
    assert [one.name for one in chosen([names[2], names[0]])] == [names[0], names[2]]
    assert [one.name for one in chosen(["all"])] == names
    with pytest.raises(UsageError, match="no experiment"):
        chosen(["alchemy"])


def test_without_a_name_the_experiments_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab"]) == 0
    assert all(name in capsys.readouterr().out for name in ("optimisation-ladder",))
    assert run(["lab", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in document["experiments"]] == list(EXPERIMENTS)
    assert run(["lab", "alchemy"]) == 2


def test_an_experiment_measures_on_a_cpu_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab", "memory-and-copies", "--device", "cpu", "--seconds", "0.01", "--json"]) == 0
    printed = capsys.readouterr()
    (found,) = json.loads(printed.out)["experiments"]
    assert [row["way"] for row in found["tables"][0]["rows"]] == ["torch.cat with the past", "written into a buffer"]
    assert "Joining a cache costs" in printed.err
