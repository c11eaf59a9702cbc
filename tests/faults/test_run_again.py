"""Cases under `warpline run`: the program's side of it, and a round of runs whose processes a test stands for."""

from __future__ import annotations

from pathlib import Path

import pytest

from faults import run_again
from faults.programs import SUITES, Case
from warpline.capture.plan import Plan
from warpline.capture.session import STEPS_AFTER_RECORDING

NAMED = ("held_out", SUITES["held_out"][0])


def test_a_program_has_the_steps_that_a_whole_recording_needs() -> None:
    plan = Plan(folder="")
    assert plan.first_recorded == run_again.BARE_STEPS + plan.warmup
    assert plan.warmup + plan.steps + STEPS_AFTER_RECORDING <= run_again.STEPS


def test_a_program_builds_first_and_runs_in_its_turn(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    done: list[str | None] = []
    case = Case("toy", "sync", "remove_sync", lambda torch, fix: lambda: done.append(fix))
    (tmp_path / run_again.GO).touch()
    run_again.run_in_turn(("toy", case), "fixed", tmp_path, 5)
    assert (tmp_path / run_again.READY).exists()
    assert done == ["remove_sync"] * 5


def test_a_run_that_fails_costs_only_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    class Stand:
        def __init__(self, named: run_again.Named, variant: str, folder: Path, skip: int | None) -> None:
            self.variant = variant

        def is_built(self) -> bool:
            return len(order) != 1

        def go(self) -> bool:
            order.append(self.variant)
            return len(order) > 1

        def end(self) -> None:
            order.append("end")

    monkeypatch.setattr(run_again, "Run", Stand)
    monkeypatch.setattr(run_again, "keep_to_calm_cores", lambda allowed: allowed)
    monkeypatch.setattr(run_again, "WAIT_S", 0.0)
    assert run_again.main(["-o", str(tmp_path), "--runs", "1", f"held_out/{NAMED[1].name}"]) == 1
    assert order == ["fixed", "faulty", "end", "end"]
