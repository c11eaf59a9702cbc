"""Groups of processes: how many start at once, and who is waited for."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from warpline.capture.trial.use import ProgramUse
from warpline.trial import groups
from warpline.trial.groups import MIN_BASELINES, VariantGroups, started_within
from warpline.trial.rows import BASELINE

BUDGET_S = 2.0
ALONE = SimpleNamespace(use=ProgramUse())


def test_a_short_budget_on_few_cores_starts_few_processes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "usable_cores", lambda: 2)
    assert started_within(40, start_s=20, ranks=1) == MIN_BASELINES + 1
    assert started_within(400, start_s=20, ranks=1) == 20
    assert started_within(400, start_s=20, ranks=2) == started_within(400, start_s=20, ranks=8) == 10
    monkeypatch.setattr(groups, "usable_cores", lambda: 16)
    assert started_within(40, start_s=20, ranks=1) == 16


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
    program: Any = SimpleNamespace(took_s=0.01, look=ALONE)
    waiting = VariantGroups(cast(Any, Budget()), program, print, lambda rows: None)
    as_slow, slower = StartingProcess("no_gc", 0.6 * BUDGET_S), StartingProcess("torch_compile", 100)
    group = [StartingProcess(BASELINE, 0.55 * BUDGET_S), as_slow, slower]
    waiting.until_ready(cast(Any, group))
    assert not as_slow.error
    assert slower.error.startswith("not ready after")


def test_a_group_runs_to_the_end_of_a_budget_that_holds_no_other() -> None:
    steps = SimpleNamespace(step_s=0.01, settle=2, per_window=8, per_round=5)
    program: Any = SimpleNamespace(took_s=1.0, steps=steps, look=ALONE)
    running = VariantGroups(cast(Any, Budget()), program, print, lambda rows: None)
    now = time.monotonic()
    # Another group takes 1 s to start, and 4 rounds of 4 processes of 0.55 s: 9.8 s, where 2 s are left.
    assert running._end(now + 0.5) == pytest.approx(now + 0.95 * BUDGET_S, abs=0.1)
    program.steps.step_s = 0.0001  # then 1.1 s
    assert running._end(now + 0.5) == now + 0.5
    running._starts_s[BASELINE] = 5.0
    assert running._end(now - 4) == pytest.approx(now + 0.95 * BUDGET_S, abs=0.1)
    running._usual_start_s = 1.0
    assert running._end(now + 1.5) == pytest.approx(now + 0.95 * BUDGET_S, abs=0.1)


def test_what_is_left_of_a_budget_measures_as_many_as_it_has_time_for() -> None:
    steps = SimpleNamespace(step_s=0.001, settle=2, per_window=8, per_round=5)
    program: Any = SimpleNamespace(took_s=0.0, steps=steps, look=ALONE)
    running = VariantGroups(cast(Any, Budget()), program, print, lambda rows: None)
    variants = cast(Any, [SimpleNamespace(name=f"fix{number}") for number in range(20)])
    # A round of one process takes 0.055 s, four of them 0.22 s: 9 processes in 2 s, 3 of them the program as it is.
    assert running.in_time(variants) == 6
    assert running.in_time(variants[:4]) == 4
    program.took_s = 1.5
    slow_start = VariantGroups(cast(Any, Budget()), program, print, lambda rows: None)
    assert slow_start.in_time(variants) == 0


def test_a_compiler_that_started_late_leaves_time_for_those_that_did_not() -> None:
    steps = SimpleNamespace(step_s=0.001, settle=2, per_window=8, per_round=5)
    program: Any = SimpleNamespace(took_s=0.01, steps=steps, look=ALONE)
    running = VariantGroups(cast(Any, Budget()), program, print, lambda rows: None)
    running.until_ready(cast(Any, [StartingProcess("prefetch", 0.05), StartingProcess("torch_compile", 0.5)]))
    quick, slow, both = (
        cast(Any, SimpleNamespace(name=name)) for name in ("prefetch", "torch_compile", "x+torch_compile")
    )
    assert running._start_s(quick) == pytest.approx(0.05, abs=0.1)
    assert running._start_s(both) == running._start_s(slow) >= 0.5
    assert running.in_time([quick, both]) == 1, "4 processes take 0.88 s, 5 take 1.1 s, of 1.5 s that are left"


def test_a_group_is_not_started_without_the_time_to_measure_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "alive_together", lambda *_: 24)
    measured: list[Any] = []
    steps = SimpleNamespace(step_s=0.001, settle=2, per_window=8, per_round=5)
    program: Any = SimpleNamespace(took_s=1.9, steps=steps, look=ALONE)
    running = VariantGroups(cast(Any, Budget()), program, print, lambda rows: None)
    monkeypatch.setattr(running, "_together", lambda some, *_: measured.extend(some))
    first, second = (cast(Any, SimpleNamespace(name=name)) for name in ("no_gc", "tf32"))
    running.measure([first])
    assert (measured, running.left_out) == ([first], False)
    running.measure([second])  # it would be ready after 1.9 of 2 s
    assert (measured, running.left_out) == ([first], True)


def test_of_a_group_for_which_there_is_no_time_the_first_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "alive_together", lambda *_: 24)
    monkeypatch.setattr(groups, "usable_cores", lambda: 64)
    measured: list[Any] = []
    steps = SimpleNamespace(step_s=0.001, settle=2, per_window=8, per_round=5)
    program: Any = SimpleNamespace(took_s=1.0, steps=steps, look=ALONE)
    running = VariantGroups(cast(Any, Budget()), program, print, lambda rows: None)
    monkeypatch.setattr(running, "_together", lambda some, *_: measured.extend(some))
    running.measure([])
    many = cast(Any, [SimpleNamespace(name=f"fix{number}") for number in range(6)])
    running.measure(many)  # of 2 s the start takes 1 s, and four rounds of four processes 0.88 s
    assert (measured, running.left_out) == ([many[0]], True)


def test_a_larger_budget_is_named_by_what_starts_took(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "usable_cores", lambda: 2)
    steps = SimpleNamespace(step_s=0.001, settle=2, per_window=8, per_round=5)
    budgets_s = []
    for ranks in (1, 2, 4):
        program: Any = SimpleNamespace(took_s=10.0, steps=steps, look=SimpleNamespace(use=ProgramUse(world_size=ranks)))
        budgets_s.append(VariantGroups(cast(Any, Budget()), program, print, lambda rows: None).enough_s(6))
    # Six variants and three times the program as it is, twice, with four rounds of 0.055 s each; two start at once.
    assert budgets_s == pytest.approx([10 + 2 * (9 * 5 + 2), 10 + 2 * (9 * 10 + 2), 10 + 2 * (9 * 10 + 2)], abs=0.1)


def test_a_process_that_was_still_starting_says_so() -> None:
    ended: list[Any] = []
    program: Any = SimpleNamespace(took_s=1.0, steps=SimpleNamespace(per_round=1), look=ALONE)
    processes = SimpleNamespace(end=ended.extend)
    keeping = VariantGroups(cast(Any, processes), program, print, lambda rows: None)
    late, failed, base = (StartingProcess(name, 100) for name in ("tf32", "bf16", BASELINE))
    failed.fail("crashed: out of memory")
    keeping._keep(cast(Any, [late, failed, base]))
    assert keeping.errors == {"tf32": "it was still starting when the trial ended", "bf16": "crashed: out of memory"}
    assert ended == [late, failed, base]
