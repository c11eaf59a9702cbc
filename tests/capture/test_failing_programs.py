"""What a user sees when the program fails, or is ended by us."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any, cast

import pytest

from warpline.capture.launch import Ending
from warpline.capture.missing_trace import _reason, why_fewer
from warpline.capture.plan import Plan
from warpline.capture.process_record import NOTHING, RECORDED
from warpline.capture.program import ProgramCommand
from warpline.capture.recorders import OTHER_THREAD
from warpline.capture.run import RunRequest, _Watcher, _where_it_failed
from warpline.capture.this_process import without_lines


def part(state: str, seen: int, **more: Any) -> dict[str, Any]:
    return {"state": state, "steps_seen": {"optimizer.step": seen} if seen else {}, "steps_recorded": 0, **more}


@pytest.mark.parametrize(
    ("parts", "where"),
    [
        ([part(NOTHING, 6)], "after 6 steps"),
        ([part(NOTHING, 0), part(NOTHING, 1)], "after 1 step"),
        ([part(NOTHING, 0)], "in its first step, or before it"),
        (
            [part(RECORDED, 25, first_step=19, ended_by="steps") | {"steps_recorded": 6}],
            "after step 25, the last one that was recorded",
        ),
    ],
)
def test_a_failure_says_at_which_step(parts: list[dict[str, Any]], where: str) -> None:
    assert _where_it_failed(parts) == where


def test_messages_of_the_observer_are_left_out_and_others_stay(capfd: pytest.CaptureFixture[str]) -> None:
    with without_lines("Execution Trace Observer"):
        os.write(2, b"[W1118] Enabling Execution Trace Observer\nanother warning\n")
    os.write(2, b"later\n")
    assert capfd.readouterr().err == "another warning\nlater\n"


def test_a_recording_in_another_thread_hides_only_the_error_that_is_none(capfd: pytest.CaptureFixture[str]) -> None:
    with without_lines(OTHER_THREAD):
        os.write(2, b"ERROR: External init callback must run in same thread as registerClient (-1 != -2)\nother\n")
    assert capfd.readouterr().err == "other\n"


@pytest.mark.parametrize(
    ("steps_recorded", "whole", "said"),
    [
        (6, False, "recorded 6 steps (optimizer.step); waiting for the program to end, Ctrl-C ends it"),
        (0, False, "recorded a window; steps are recorded instead if there are any before the program ends, Ctrl-C"),
        (0, True, "recorded a window; waiting for the program to end"),
    ],
)
def test_a_window_is_not_the_end_where_steps_may_come(
    tmp_path: Path, steps_recorded: int, whole: bool, said: str
) -> None:
    heard: list[str] = []
    request = RunRequest(cast(ProgramCommand, None))
    watcher = _Watcher(tmp_path, request, Plan(folder=str(tmp_path), whole=whole), heard.append)
    done = {"steps_recorded": steps_recorded, "steps_found_by": "optimizer.step", "pid": 1, "ended_by": "seconds"}
    watcher._after_recording(cast("subprocess.Popen[bytes]", None), [done])
    assert heard[0].startswith(said)


@pytest.mark.parametrize(
    ("ended_by", "said"),
    [
        ("exit", "recorded 2 of 5 steps: the program ended after 30, and 28 come before the recording, "),
        ("seconds", "recorded 2 of 5 steps: the limit --seconds was reached"),
        ("steps", None),
    ],
)
def test_fewer_steps_than_asked_for_have_a_reason(ended_by: str, said: str | None) -> None:
    recorded = {"first_step": 28, "ended_by": ended_by, "steps_recorded": 5 if said is None else 2}
    found = why_fewer(Plan(folder="", steps=5), [part(RECORDED, 30) | recorded])
    assert found is None if said is None else (found or "").startswith(said)
    if ended_by == "exit":
        assert (found or "").endswith("try --skip 7 --warmup 1 --steps 5")


@pytest.mark.parametrize(("exit_code", "first"), [(0, "try --skip"), (1, "correct its own error first, or try --skip")])
def test_too_few_steps_of_a_program_that_failed_are_its_error_first(exit_code: int, first: str, tmp_path: Path) -> None:
    seen = part(NOTHING, 8, ended_by="exit", notes=[])
    code, message, hint = _reason(
        tmp_path, Plan(str(tmp_path)), [seen], Ending(exit_code, None, 1.0, interrupted=False), in_code=False
    )
    assert (code, message.partition(" (")[0]) == ("too-few-steps", "the program ended after 8 steps")
    assert hint.startswith(first)


def test_calls_that_were_never_a_step_are_not_too_few(tmp_path: Path) -> None:
    # --skip 3 --warmup 1 begins to record after 4 steps; 13 calls came, and none was known to be a step.
    seen = part(NOTHING, 13, ended_by="exit", notes=[])
    plan = Plan(str(tmp_path), skip=3, settle_s=0.0, warmup=1)
    code, message, hint = _reason(tmp_path, plan, [seen], Ending(0, None, 1.0, interrupted=False), in_code=False)
    assert (code, hint.partition(",")[0]) == ("no-steps", "record it from the start with --whole")
    assert message.startswith("the program ended after 13 calls")
