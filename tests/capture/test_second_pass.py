"""The second pass: its limits, and what goes wrong in it."""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from warpline.capture.bare_step_timer import StepTime
from warpline.capture.plan import NSYS, Plan
from warpline.capture.process_record import ProcessRecord, file_beside
from warpline.capture.second_pass import SecondPass, in_second_pass, wants_second_pass


class Observer:
    """torch's observer: it writes a file from the start on."""

    calls: ClassVar[list[str]] = []

    def register_callback(self, path: str) -> None:
        self.calls.clear()
        self.path = Path(path)

    def start(self) -> None:
        self.path.write_text("x" * 1000)

    def stop(self) -> None:
        self.calls.append("stop")

    def unregister_callback(self) -> None:
        self.calls.append("remove")


class Failing(Observer):
    def start(self) -> None:
        raise RuntimeError("not\nhere")


def pass_in(folder: Path, observer: type[Observer] = Observer, step_ns: int = 1000, **settings: Any) -> SecondPass:
    marks = contextlib.nullcontext
    torch = SimpleNamespace(profiler=SimpleNamespace(ExecutionTraceObserver=observer, record_function=marks))
    time = StepTime(step_ns, step_ns, step_ns, 6, "clock", settled=True)
    record = ProcessRecord(file="trace.json", recorded_step_ns=time)
    return SecondPass(torch, Plan(folder=str(folder), lines=False, **settings), record)


def test_two_steps_are_looked_at(tmp_path: Path) -> None:
    second_pass = pass_in(tmp_path)
    assert second_pass.start()
    assert [second_pass.step(), second_pass.step()] == [False, True]
    second_pass.end(whole=True)
    assert (second_pass.report["state"], second_pass.report["steps"], second_pass.report["notes"]) == ("done", 2, [])


def test_the_observer_is_removed_a_step_after_it_was_stopped(tmp_path: Path) -> None:
    second_pass = pass_in(tmp_path)
    second_pass.start()
    second_pass.step()
    second_pass.end(whole=True)
    assert Observer.calls == ["stop"]
    second_pass.release()
    second_pass.release()
    assert Observer.calls == ["stop", "remove"]


def test_a_step_that_is_too_long_is_not_looked_at(tmp_path: Path) -> None:
    second_pass = pass_in(tmp_path, step_ns=11 * 10**9)
    assert not second_pass.waiting
    assert second_pass.report["state"] == "skipped"
    assert "10 s" in second_pass.report["notes"][0]


def test_of_long_steps_one_is_enough(tmp_path: Path) -> None:
    second_pass = pass_in(tmp_path, step_ns=6 * 10**9)
    assert second_pass.start()
    assert second_pass.step()


def test_an_observer_that_fails_is_noted_and_nothing_else(tmp_path: Path) -> None:
    second_pass = pass_in(tmp_path, Failing)
    assert second_pass.start()
    assert second_pass.report["notes"] == ["no data flow: RuntimeError: not here"]


def test_a_file_that_grows_too_large_ends_the_pass(tmp_path: Path) -> None:
    second_pass = pass_in(tmp_path, look_megabytes=0)
    assert second_pass.start()
    assert second_pass.over_limit()
    assert second_pass.step()


def test_an_end_within_the_first_step_leaves_nothing(tmp_path: Path) -> None:
    second_pass = pass_in(tmp_path)
    assert second_pass.start()
    second_pass.end(whole=False)
    assert second_pass.report["state"] == "skipped"
    assert list(tmp_path.iterdir()) == []


def test_an_end_before_it_starts_leaves_nothing(tmp_path: Path) -> None:
    second_pass = pass_in(tmp_path)
    second_pass.end(whole=False)
    assert second_pass.report["state"] == "skipped"


def test_an_error_at_the_end_ends_the_pass_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    second_pass = pass_in(tmp_path)
    assert second_pass.start()
    second_pass.step()

    def broken(self: Observer) -> None:
        raise ValueError("broken")

    monkeypatch.setattr(Observer, "stop", broken)
    second_pass.end(whole=True)
    assert second_pass.report["state"] == "failed"
    assert second_pass.report["notes"] == ["ValueError: broken"]
    assert list(tmp_path.iterdir()) == []


def test_who_wants_a_second_pass() -> None:
    assert wants_second_pass(Plan(folder=""))
    assert not wants_second_pass(Plan(folder="", tool=NSYS))
    assert not wants_second_pass(Plan(folder="", lines=False, dataflow=False))
    assert not wants_second_pass(Plan(folder="", stacks=True, dataflow=False))
    assert in_second_pass({"look": {"state": "waiting"}})
    assert not in_second_pass({"look": {"state": "done"}})
    assert not in_second_pass({"look": None})


@pytest.mark.parametrize(("trace", "beside"), [("rank0.json.gz", "rank0.look"), ("trace.json", "trace.look")])
def test_files_lie_beside_their_trace(trace: str, beside: str) -> None:
    assert file_beside(trace, ".look") == beside
