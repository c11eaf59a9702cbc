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
from warpline.reports.lab import lab_table

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
        LabExperiment("needs", "?", works, on_cpu="nothing waits"),
        LabExperiment("works", "?", works),
    )
    monkeypatch.setattr(runner, "EXPERIMENTS", {toy.name: toy for toy in toys})


@pytest.mark.usefixtures("toys")
def test_an_experiment_that_fails_leaves_the_others_alone() -> None:
    broken, needing, working = run_experiments(["all"], device="cpu").experiments
    assert broken.not_run == "RuntimeError: out of memory"
    assert needing.not_run == "it needs a GPU: nothing waits"
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


def test_on_a_cpu_timing_has_the_ways_that_wait_for_no_gpu() -> None:
    (found,) = run_experiments(["timing"], device="cpu", seconds=0.01).experiments
    (ways,) = found.tables
    assert [row[0] for row in ways.rows] == [
        "first call of a new shape",
        "clock around one call",
        "clock around 20 calls",
        "bench",
    ]
    assert "synchronisation" not in found.seen


@pytest.mark.usefixtures("toys")
def test_ops_run_on_one_thread_of_a_cpu_and_then_on_as_many_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    seen: list[int] = []

    def count(lab: Workbench) -> Observation:
        seen.append(torch.get_num_threads())
        return works(lab)

    monkeypatch.setitem(runner.EXPERIMENTS, "works", LabExperiment("works", "?", count))
    before = torch.get_num_threads()
    run_experiments(["works"], device="cpu")
    assert (seen, torch.get_num_threads()) == ([1], before)


def test_a_column_that_no_row_has_is_not_shown() -> None:
    columns = (LabColumn("way", "way"), LabColumn("time_ns", "time", "ns"), LabColumn("gpu_ns", "GPU alone", "ns"))
    shown = lab_table(LabTable("ways", "Ways", columns, (("eager", 5.0, None), ("compile", None, None))))
    assert [column.name for column in shown.columns] == ["way", "time_ns"]
    assert shown.rows == (("eager", 5.0), ("compile", None))


def test_an_experiment_measures_on_a_cpu_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab", "memory-and-copies", "--device", "cpu", "--seconds", "0.01", "--json"]) == 0
    printed = capsys.readouterr()
    (found,) = json.loads(printed.out)["experiments"]
    assert [row["way"] for row in found["tables"][0]["rows"]] == ["torch.cat with the past", "written into a buffer"]
    assert "Joining a cache costs" in printed.err
