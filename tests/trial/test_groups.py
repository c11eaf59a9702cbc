"""Groups of processes: how many start at once, and who is waited for."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from warpline.trial import groups
from warpline.trial.groups import MIN_BASELINES, VariantGroups, started_within
from warpline.trial.rows import BASELINE

BUDGET_S = 2.0


def test_a_short_budget_on_few_cores_starts_few_processes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "usable_cores", lambda: 2)
    assert started_within(40, start_s=20) == MIN_BASELINES + 1
    assert started_within(400, start_s=20) == 20
    monkeypatch.setattr(groups, "usable_cores", lambda: 16)
    assert started_within(40, start_s=20) == 16


class StartingProcess:
    """A process that is ready after some seconds."""

    limit_s, is_over, error, paused = 100.0, False, "", False
    windows, report = (), None

    def __init__(self, name: str, start_s: float) -> None:
        self.name, self.started, self._start_s = name, time.monotonic(), start_s

    def is_ready(self) -> bool:
        return time.monotonic() - self.started > self._start_s

    def fail(self, reason: str) -> None:
        self.error = reason

    def pause(self) -> None:
        pass

    def problem(self) -> str:
        return ""


class Budget:
    """A budget that is used up."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    @property
    def left_s(self) -> float:
        return BUDGET_S - (time.monotonic() - self._began)


def test_a_variant_gets_the_time_to_start_that_the_program_as_it_is_needs() -> None:
    program: Any = SimpleNamespace(took_s=0.01)
    waiting = VariantGroups(cast(Any, Budget()), program, print, lambda rows: None)
    as_slow, slower = StartingProcess("no_gc", 0.6 * BUDGET_S), StartingProcess("torch_compile", 100)
    group = [StartingProcess(BASELINE, 0.55 * BUDGET_S), as_slow, slower]
    waiting._until_ready(cast(Any, group))
    assert not as_slow.error
    assert slower.error.startswith("not ready after")
