"""A session driven by hand: threads, a full disk, and whatever else must not reach the program."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from warpline.capture import bare_step_timer as laps
from warpline.capture.plan import Plan
from warpline.capture.process_record import ProcessRecord
from warpline.capture.recorders import TorchRecorder
from warpline.capture.session import DONE, MAX_MISSED_STEPS, SECOND_PASS, Session
from warpline.capture.steps import FORWARD, MAX_IGNORED_CALLS, OPTIMIZER

torch = pytest.importorskip("torch")


def session_in(folder: Path, recorded: int = 50) -> Session:
    return Session(torch, Plan(folder=str(folder), skip=2, settle_s=0.0, warmup=1, steps=recorded))


def steps(session: Session, count: int) -> None:
    for _ in range(count):
        torch.randn(8, 8) @ torch.randn(8, 8)
        session.boundary(OPTIMIZER)


def in_a_thread(call: Any, *arguments: Any) -> None:
    thread = threading.Thread(target=call, args=arguments)
    thread.start()
    thread.join()


def written(folder: Path) -> dict[str, Any]:
    (part,) = (folder / "parts").glob("*.json")
    return json.loads(part.read_text())


def test_a_thread_that_is_recorded_may_end_before_the_recording(tmp_path: Path) -> None:
    session = session_in(tmp_path)
    in_a_thread(steps, session, 6)
    session.close("exit")
    assert (written(tmp_path)["state"], written(tmp_path)["steps_recorded"]) == ("recorded", 3)
    assert "aten::matmul" in (tmp_path / "trace.json").read_text()


def test_a_thread_for_every_step_is_followed(tmp_path: Path) -> None:
    session = session_in(tmp_path)
    for _ in range(6):
        in_a_thread(steps, session, 1)
    session.close("exit")
    assert (written(tmp_path)["state"], written(tmp_path)["steps_recorded"]) == ("recorded", 3)


def test_steps_of_a_second_thread_do_not_count_while_the_first_lives(tmp_path: Path) -> None:
    session = session_in(tmp_path)
    steps(session, 1)
    in_a_thread(steps, session, 9)
    assert session.finder.seen[OPTIMIZER] == 1


def test_steps_that_fall_silent_in_the_warm_up_make_room_for_others(tmp_path: Path) -> None:
    session = session_in(tmp_path)
    for _ in range(3):  # a trial run of another model
        session.boundary(FORWARD, who=1)
    assert session.finder.chosen == FORWARD
    steps(session, 30)
    session.close("exit")
    assert written(tmp_path)["steps_found_by"] == "optimizer.step"
    assert written(tmp_path)["steps_recorded"] == 30 - (MAX_IGNORED_CALLS + 2) - 3


def test_a_step_that_does_not_come_any_more_is_no_longer_said_to_be_known(tmp_path: Path) -> None:
    session = Session(torch, Plan(folder=str(tmp_path), after_s=0.0))
    steps(session, 4)
    assert written(tmp_path)["step_is"] == "one optimizer.step"
    time.sleep(MAX_MISSED_STEPS * session._laps.longest_s())
    session.look_for_another_step()
    assert written(tmp_path)["step_is"] is None


def test_a_profiler_of_one_thread_is_not_stopped_from_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch would end the process with a segmentation fault."""
    monkeypatch.setattr(TorchRecorder, "can_stop_here", lambda recorder: False)
    session = session_in(tmp_path)
    steps(session, 4)
    recorder = session._recorder
    session.cut("seconds")
    assert session._recorder is recorder
    session.close("exit")
    assert (session.phase, written(tmp_path)["ended_by"]) == (DONE, "error")
    assert "the recorded thread has ended" in written(tmp_path)["notes"][0]
    assert recorder is not None
    recorder.stop(whole=False)


def test_what_ends_the_recording_is_not_part_of_the_last_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = ProcessRecord.write

    def with_an_op(record: ProcessRecord, folder: Path) -> None:
        torch.ones(1).exp()
        write(record, folder)

    session = session_in(tmp_path, recorded=2)
    steps(session, 4)
    monkeypatch.setattr(ProcessRecord, "write", with_an_op)
    steps(session, 2)
    session.close("exit")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    last = max(event["ts"] + event["dur"] for event in events if event.get("name", "").startswith("ProfilerStep#"))
    assert [event["ts"] >= last for event in events if event.get("name") == "aten::exp"] == [True]


def test_a_trace_that_cannot_be_written_is_said_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(recorder: TorchRecorder, path: Path) -> None:
        path.with_name("trace.json.tmp").write_text("half")

    monkeypatch.setattr(TorchRecorder, "export", full)
    session = session_in(tmp_path)
    steps(session, 6)
    session.close("exit")
    assert written(tmp_path)["state"] == "nothing"
    assert "the trace could not be written" in written(tmp_path)["notes"][0]
    assert [path.name for path in tmp_path.iterdir()] == ["parts"]


def test_steps_are_timed_before_while_and_after_they_are_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0
    monkeypatch.setattr(laps, "time", SimpleNamespace(perf_counter_ns=lambda: now))
    session = Session(torch, Plan(folder=str(tmp_path), skip=8, settle_s=0.0, warmup=1, steps=3))
    for step in range(24):
        now += 100 if step < 8 else 300 if step < 12 else 200
        session.boundary(OPTIMIZER)
    times = {name: written(tmp_path)[f"{name}_step_ns"] for name in ("bare", "recorded", "later")}
    assert {name: (time["median_ns"], time["steps"]) for name, time in times.items()} == {
        "bare": (100, 5),
        "recorded": (300, 3),
        "later": (200, 8),
    }


def test_a_session_is_over_after_the_second_pass_not_between_it_and_the_recording(tmp_path: Path) -> None:
    session = session_in(tmp_path, recorded=2)
    seen: list[bool] = []
    session._calibrate = lambda: seen.append(session.over)  # type: ignore[method-assign]
    steps(session, 6)
    assert (session.phase, seen, session.over) == (SECOND_PASS, [False], False)
    session.close("exit")
    assert session.over


def test_the_second_pass_starts_when_the_ranges_of_the_recorded_steps_have_closed(tmp_path: Path) -> None:
    """torch would write the end of such a range into memory that the recording has freed."""
    session = session_in(tmp_path, recorded=2)
    states = []
    with torch.profiler.record_function("before the recording"):
        steps(session, 4)
        with torch.profiler.record_function("the last recorded step and the one after it"):
            for _ in range(2):
                steps(session, 1)
                states.append((written(tmp_path)["look"]["state"], torch.autograd._profiler_enabled()))
        steps(session, 1)
        states.append((written(tmp_path)["look"]["state"], torch.autograd._profiler_enabled()))
    assert states == [("waiting", False), ("waiting", False), ("looking", True)]
    session.close("exit")


def test_the_second_pass_never_starts_where_the_recording_stops(tmp_path: Path) -> None:
    session = session_in(tmp_path, recorded=2)
    steps(session, 5)
    assert (session.phase, written(tmp_path)["look"]["state"]) == (SECOND_PASS, "waiting")
    steps(session, 1)
    assert written(tmp_path)["look"]["state"] == "looking"
    session.close("exit")


def test_a_second_pass_that_cannot_start_says_why(tmp_path: Path) -> None:
    session = session_in(tmp_path, recorded=2)
    steps(session, 4)
    with torch.profiler.record_function("all steps from here"):
        steps(session, 9)
        session.close("exit")
    look = written(tmp_path)["look"]
    assert (look["state"], look["notes"]) == (
        "skipped",
        ["a record_function that began in the recorded steps was not over"],
    )
