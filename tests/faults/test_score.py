"""The scoreboard: how answers are counted, and one floor for all suites together."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from contradictions import below_device_work, contradictions, on_the_screen
from paths import ROOT

from faults.recorded import RecordedCase, recorded_cases
from faults.score import compare, main
from faults.scoreboard import WHOLE, Answer, Score, comparison, from_dict, ranges_by_fix, scores, table, to_dict
from warpline.findings.diagnosis import diagnose
from warpline.trace.open import open_trace

LEAST_RIGHT_CAUSE = 0.9
"""Some labels name the waits of a step whose launches would give more back; only one fix of each was timed."""
LEAST_RIGHT_STEP = 0.8
"""Shares of all cases, not of a suite and not of a case: what the diagnosis promises."""
RECORDED = {case.name: case for case in recorded_cases() if case.is_kept}


def case(**changes: Any) -> RecordedCase:
    """A case of 10 ms that a CUDA graph brings to 4 ms, and compiling to 5 ms."""
    entry = {
        "name": "slow_loop",
        "cause": "dispatch",
        "fix": "cuda_graph",
        "innocent": None,
        "innocent_step_ns": None,
        "stacks": True,
        "gain": 2.5,
        "bare_step_ns": {"faulty": {"step_ns": 10_000_000}, "fixed": {"step_ns": 4_000_000}},
        "other_fixes": {"torch_compile": {"step_ns": 5_000_000}},
    }
    return RecordedCase("planted", Path("recordings"), entry | changes)


def diagnosis(cause: str = "dispatch", fix: str | None = "cuda_graph", confidence: str = "high") -> dict[str, Any]:
    """It says 11 ms bare (10.5 to 12), 4.4 ms with the fix (3.8 to 5.2), and 2.2 to 2.4 times faster."""
    return {
        "verdict": {
            "cause": cause,
            "fix": fix,
            "gain": {"low": 2.2, "expected": 2.3, "high": 2.4},
            "new_step_ns": {"low": 3_800_000, "expected": 4_400_000, "high": 5_200_000},
        },
        "replay": {
            "bare_step_ns": 11_000_000,
            "bare_step_range_ns": {"low": 10_500_000, "high": 12_000_000},
            "error_pct": 0.1,
        },
        "findings": [{"confidence": confidence}],
    }


def test_an_answer_is_held_against_the_stopwatch() -> None:
    answer = compare(case(), diagnosis())
    assert answer.right_cause
    assert (answer.step_error, answer.bare_error) == (0.1, 0.1)
    assert (answer.right_step, answer.right_bare_step) == (True, True)
    # The stopwatch says 2.5 times, 4 ms, and 10 ms bare.
    assert (answer.gain_in_range, answer.step_in_range, answer.bare_in_range) == (False, True, False)


def test_another_fix_that_was_timed_is_held_against_its_own_time() -> None:
    answer = compare(case(), diagnosis(fix="torch_compile"))
    assert answer.step_error == pytest.approx(4.4 / 5 - 1)
    assert answer.step_in_range


def test_a_fix_that_was_not_timed_has_no_range_to_hold() -> None:
    answer = compare(case(), diagnosis(cause="sync", fix="remove_sync"))
    assert not answer.right_cause
    assert answer.step_error == pytest.approx(0.1)  # against the fix of the case
    assert (answer.gain_in_range, answer.step_in_range) == (None, None)


def test_a_healthy_case_is_held_against_the_step_as_it_is() -> None:
    healthy = case(cause="healthy", fix=None, other_fixes={}, innocent="tf32", innocent_step_ns={"step_ns": 9_900_000})
    answer = compare(healthy, diagnosis(cause="kernel", fix="tf32"))
    assert answer.step_error == pytest.approx(-0.56)
    assert answer.high_on_healthy
    assert answer.step_in_range is False
    assert not compare(healthy, diagnosis("healthy", None, "medium")).high_on_healthy


def test_without_a_verdict_nothing_is_right() -> None:
    answer = compare(case(), {"verdict": None, "replay": None, "findings": []})
    assert (answer.right_cause, answer.right_step, answer.right_bare_step) == (False, False, False)
    assert "?" in answer.line()


def right() -> Answer:
    return compare(case(), diagnosis())


def test_scores_are_counted_for_each_suite_and_the_whole() -> None:
    wrong = replace(right(), suite="field", said_cause="sync", step_error=-0.3, step_in_range=None, gain_in_range=None)
    by_suite = scores([right(), wrong])
    assert list(by_suite) == ["planted", "field", WHOLE]
    whole = by_suite[WHOLE]
    assert (whole.cases, whole.right_cause, whole.right_step, whole.step_in_range, whole.ranges) == (2, 1, 1, 1, 1)
    assert whole.median_step_error == pytest.approx(0.2)
    assert "| all suites | 2     | 1 " in table(by_suite)


def test_ranges_are_counted_for_each_fix_that_has_enough_timed_cases() -> None:
    graphs = [replace(right(), case=f"case {number}") for number in range(7)]
    untimed = replace(right(), step_in_range=None, gain_in_range=None)
    assert ranges_by_fix([*graphs, untimed]) == ""
    wrong = replace(right(), step_in_range=False, gain_in_range=True)
    assert ranges_by_fix([*graphs, wrong]) == "cuda_graph: gain in range 1/8, step in range 7/8\n"


def test_a_score_is_compared_with_an_earlier_one() -> None:
    first, second = right(), replace(right(), case="other", step_error=0.5)
    before = from_dict(json.loads(json.dumps(to_dict([first, second], stacks=False, date="2026-11-15"))))
    assert before == [first, second]
    after = [replace(first, said_cause="sync"), replace(second, step_error=0.1), replace(first, case="new")]
    text = comparison(before, after)
    assert "cause: lost slow_loop; won none\n" in text
    assert "step within 25 %: lost none; won other\n" in text
    assert "| 2 → 1 " in text


def test_an_unknown_suite_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["nowhere"])
    assert stop.value.code == 2
    assert "no suite nowhere" in capsys.readouterr().err


def test_a_suite_without_recordings_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("faults.score.recorded_suites", list)
    with pytest.raises(SystemExit) as stop:
        main(["ward"])
    assert stop.value.code == 2
    assert "not recorded yet: ward" in capsys.readouterr().err


@pytest.mark.parametrize("path", sorted((ROOT / "faults" / "scores").glob("*.json")))
def test_a_score_that_is_kept_says_what_its_answers_say(path: Path) -> None:
    kept = json.loads(path.read_text(encoding="utf-8"))
    assert to_dict(from_dict(kept), stacks=kept["stacks"], date=kept["date"]) == kept


@cache
def judged(name: str) -> tuple[Answer, list[str]]:
    """The diagnosis of a recording held against what was measured, and what it says against itself."""
    case = RECORDED[name]
    found = diagnose(open_trace(case.recording(case.scored_variant), cache=False), why=True)
    said = json.loads(json.dumps(found.to_dict()))
    return compare(case, said), [*contradictions(said), *below_device_work(found), *on_the_screen(found)]


@pytest.mark.parametrize("name", RECORDED)
def test_no_diagnosis_of_a_recording_contradicts_itself(name: str) -> None:
    assert judged(name)[1] == []


@pytest.mark.long
def test_the_diagnosis_keeps_what_it_promises_over_all_suites() -> None:
    answers = [judged(name)[0] for name in RECORDED]
    score = Score.of(answers)
    assert score.right_cause >= LEAST_RIGHT_CAUSE * score.cases, [
        answer.line() for answer in answers if not answer.right_cause
    ]
    assert score.right_step >= LEAST_RIGHT_STEP * score.cases, [
        answer.line() for answer in answers if not answer.right_step
    ]
    assert [answer.case for answer in answers if answer.high_on_healthy] == []
