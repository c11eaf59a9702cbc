"""The benchmark of agents: twelve cases, their grades, and the scripted client on one of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="needs pip install 'warpline[mcp]'")

import anyio

from benchmarks.agents import tasks
from benchmarks.agents.cases import CAUSES, cases, grade
from benchmarks.agents.scripted import TOKEN_CHARACTERS, solve_all, table


def test_there_are_two_programs_of_each_cause_with_recordings_before_and_after() -> None:
    found = cases()
    assert [case.cause for case in found] == [cause for cause in CAUSES for _ in range(2)]
    assert all(case.before.exists() and case.after.exists() and case.fixes for case in found)


def test_an_answer_is_graded_by_what_the_stopwatch_showed() -> None:
    case = cases()[0]
    right = {"cause": "dispatch", "fix": "batch", "gain": {"low": 13, "high": 14}, "verdict": "faster"}
    assert case.gains["batch"] == pytest.approx(13.0, abs=0.1)
    assert grade(case, right).points == 4
    assert grade(case, {**right, "fix": "cuda_graph"}).points == 3  # it helps, but by another factor
    assert grade(case, {**right, "gain": {"low": 20, "high": 30}}).points == 3
    assert grade(case, {"gain": "much"}).points == 0


def test_tasks_are_made_and_graded(tmp_path: Path) -> None:
    tasks.make(tmp_path)
    assert sorted(path.name for path in (tmp_path / "12").iterdir()) == ["TASK.md", "after.json.gz", "before.json.gz"]
    answer = tmp_path / "01" / "answer.json"
    assert tasks.points(answer, cases()[0]) == 0
    answer.write_text(json.dumps({"cause": "dispatch", "fix": "batch"}))
    assert tasks.points(answer, cases()[0]) == 2


def test_the_scripted_client_solves_a_case_over_stdio() -> None:
    (case,) = [case for case in cases() if case.name == "double_from_numpy"]
    (session,) = anyio.run(solve_all, [case])
    assert session.grade is not None
    assert session.grade.cause and session.grade.verdict
    assert session.largest / TOKEN_CHARACTERS <= 2000
    assert "`double_from_numpy`" in table([session])
