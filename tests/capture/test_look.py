"""The second look: its limits, and what goes wrong in it."""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from warpline.capture.laps import StepTime
from warpline.capture.look import Look, still_looks, wants_look
from warpline.capture.plan import NSYS, Plan
from warpline.capture.process_record import ProcessRecord, file_beside


class Observer:
    """torch's observer: it writes a file from the start on."""

    def register_callback(self, path: str) -> None:
        self.path = Path(path)

    def start(self) -> None:
        self.path.write_text("x" * 1000)

    def stop(self) -> None:
        pass

    def unregister_callback(self) -> None:
        pass


class Failing(Observer):
    def start(self) -> None:
        raise RuntimeError("not\nhere")


def look_at(folder: Path, observer: type[Observer] = Observer, step_ns: int = 1000, **settings: Any) -> Look:
    marks = contextlib.nullcontext
    torch = SimpleNamespace(profiler=SimpleNamespace(ExecutionTraceObserver=observer, record_function=marks))
    time = StepTime(step_ns, step_ns, step_ns, 6, "clock", settled=True)
    record = ProcessRecord(file="trace.json", recorded_step_ns=time)
    return Look(torch, Plan(folder=str(folder), lines=False, **settings), record)


def test_two_steps_are_looked_at(tmp_path: Path) -> None:
    look = look_at(tmp_path)
    assert look.start()
    assert [look.step(), look.step()] == [False, True]
    look.end(whole=True)
    assert (look.report["state"], look.report["steps"], look.report["notes"]) == ("done", 2, [])


def test_a_step_that_is_too_long_is_not_looked_at(tmp_path: Path) -> None:
    look = look_at(tmp_path, step_ns=11 * 10**9)
    assert not look.start()
    assert look.report["state"] == "skipped"
    assert "10 s" in look.report["notes"][0]


def test_of_long_steps_one_is_enough(tmp_path: Path) -> None:
    look = look_at(tmp_path, step_ns=6 * 10**9)
    assert look.start()
    assert look.step()


def test_an_observer_that_fails_is_noted_and_nothing_else(tmp_path: Path) -> None:
    look = look_at(tmp_path, Failing)
    assert look.start()
    assert look.report["notes"] == ["no data flow: RuntimeError: not here"]


def test_a_file_that_grows_too_large_ends_the_look(tmp_path: Path) -> None:
    look = look_at(tmp_path, look_megabytes=0)
    assert look.start()
    assert look.over_limit()
    assert look.step()


def test_an_end_within_the_first_step_leaves_nothing(tmp_path: Path) -> None:
    look = look_at(tmp_path)
    assert look.start()
    look.end(whole=False)
    assert look.report["state"] == "skipped"
    assert list(tmp_path.iterdir()) == []


def test_an_error_at_the_end_ends_the_look_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    look = look_at(tmp_path)
    assert look.start()
    look.step()

    def broken(self: Observer) -> None:
        raise ValueError("broken")

    monkeypatch.setattr(Observer, "stop", broken)
    look.end(whole=True)
    assert look.report["state"] == "failed"
    assert look.report["notes"] == ["ValueError: broken"]
    assert list(tmp_path.iterdir()) == []


def test_who_wants_a_look() -> None:
    assert wants_look(Plan(folder=""))
    assert not wants_look(Plan(folder="", tool=NSYS))
    assert not wants_look(Plan(folder="", lines=False, dataflow=False))
    assert not wants_look(Plan(folder="", stacks=True, dataflow=False))
    assert still_looks({"look": {"state": "waiting"}})
    assert not still_looks({"look": {"state": "done"}})
    assert not still_looks({"look": None})


@pytest.mark.parametrize(("trace", "beside"), [("rank0.json.gz", "rank0.look"), ("trace.json", "trace.look")])
def test_files_lie_beside_their_trace(trace: str, beside: str) -> None:
    assert file_beside(trace, ".look") == beside
