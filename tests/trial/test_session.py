"""A session: what it says of a budget that is too short, and of Ctrl-C."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from warpline.capture.trial.use import ProgramUse
from warpline.trial import session
from warpline.trial.candidates import candidates
from warpline.trial.groups import StopTrial
from warpline.trial.session import TrialRequest, TrialSession, run_trial


class ShortGroups:
    """Groups for which the budget has no time."""

    left_out, count = True, 0

    def __init__(self) -> None:
        self.measured: list[Any] = []
        self.errors: dict[str, str] = {}

    def enough_s(self, variants: int) -> float:
        return 100.0 * variants

    def measure(self, variants: Any) -> None:
        pass

    def in_time(self, variants: int) -> int:
        return 0


def test_it_names_a_budget_that_has_time_for_all() -> None:
    program: Any = SimpleNamespace(look=SimpleNamespace(use=ProgramUse()), steps=None, took_s=22.0)
    said: list[str] = []
    request = TrialRequest(("train.py",), tuple(candidates(["nothing", "no_gc", "tf32"])), 120.0)
    trial = TrialSession(request, program, cast(Any, ShortGroups()), said.append)
    with pytest.raises(StopTrial):  # so that the answer says it too
        trial.measure_all()
    # TF32 needs a GPU: 200 s for two, rounded up to minutes.
    assert said == ["starting the program takes about 22 s here; --budget 4m has time for 2 fixes"] == [trial.needs()]


def test_ctrl_c_in_the_first_run_is_no_matter_of_the_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(session, "look_at_program", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_trial(TrialRequest(("true",), (), 1.0, working_folder=tmp_path), print)
