"""Cases recorded again and again, by processes that write what a test can count; and the looks at such runs."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from faults import more_runs, repeat
from faults.actor import Actor, Worker
from faults.jobs import Job
from faults.more_runs import looks, outcome
from faults.programs import SUITES
from faults.rounds import KEEP, MEASURE

FIRST, SECOND = SUITES["held_out"][:2]


def recorder(job: Job, folder: Path) -> Callable[[], Worker]:
    """A process that writes when it is told to keep; that of the second case's fix cannot be built."""

    def build() -> Worker:
        if job.case == SECOND and job.variant == "fixed":
            raise RuntimeError("out of memory")
        asked: list[str] = []

        def work(what: str) -> dict[str, int]:
            asked.append(what)
            if what == KEEP:
                assert asked[0] == MEASURE
                (folder / f"{job.case.name}.{job.variant}").touch()
            return {}

        return work

    return build


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No GPU, no torch, and no search for calm cores."""
    monkeypatch.setattr(repeat, "actor_of", lambda job, folder: Actor(job, recorder(job, folder)))
    monkeypatch.setattr(repeat, "import_once", lambda suite: None)
    monkeypatch.setattr(repeat, "keep_to_calm_cores", lambda allowed: allowed)
    monkeypatch.setattr(repeat, "WAIT_S", 0.0)


def test_a_recording_that_fails_costs_only_itself(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    names = [f"held_out/{case.name}" for case in (FIRST, SECOND)]
    assert repeat.main(["-o", str(tmp_path), "--runs", "2", *names]) == 1
    faulty = ["plain" if case.stacks else "faulty" for case in (FIRST, SECOND)]
    written = {f"{FIRST.name}.{faulty[0]}", f"{FIRST.name}.fixed", f"{SECOND.name}.{faulty[1]}"}
    for run in "01":
        assert {path.name for path in tmp_path.joinpath("held_out", run).iterdir()} == written
    assert "run 1, 6 recordings" in capfd.readouterr().err


def test_no_run_begins_after_the_time(tmp_path: Path) -> None:
    assert repeat.main(["-o", str(tmp_path), "--minutes", "-1", f"held_out/{FIRST.name}"]) == 1
    assert not list(tmp_path.iterdir())


def test_a_case_that_does_not_exist_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        repeat.main(["-o", str(tmp_path), "held_out/nothing"])
    assert "there is no case held_out/nothing" in capsys.readouterr().err


def test_as_many_more_runs_are_looked_at_as_were_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    class Found:
        """Inconclusive until there are four runs; one look asks for three more."""

        def __init__(self, a: list[int], b: list[int], least_effect: float) -> None:
            assert len(a) == len(b)
            self.verdict, self.more_runs = ("inconclusive", 3) if len(a) < 4 else ("faster", None)

    monkeypatch.setattr(more_runs, "compare_measurements", Found)
    runs = [object() for _ in range(5)]
    seen = list(looks(runs, runs, random.Random(0)))  # type: ignore[arg-type]
    assert seen == [(1, "inconclusive", 3), (4, "faster", None)]
    assert outcome(seen, 0.9) == "right at the number asked for"
    assert outcome(seen, 1.1) == "wrong at the number asked for"
    few = list(looks(runs[:3], runs, random.Random(0)))  # type: ignore[arg-type]
    assert outcome(few, 0.9) == "more runs than recorded asked for"
    assert outcome([(1, "inconclusive", None)], 0.9) == "no number of runs would settle it"
