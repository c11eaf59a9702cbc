"""Step times from clocks and events that tell what the test wants."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from warpline.capture import bare_step_timer as laps
from warpline.capture.bare_step_timer import StepTime, StepTimer, reliable_bare_step
from warpline.capture.plan import Plan


class FakeEvent:
    now_ms = 0.0

    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing

    def record(self) -> None:
        self.at_ms = FakeEvent.now_ms

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, other: FakeEvent) -> float:
        return other.at_ms - self.at_ms


def fake_torch(on_gpu: bool) -> Any:
    return SimpleNamespace(cuda=SimpleNamespace(is_initialized=lambda: on_gpu, Event=FakeEvent))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    now = [0]
    monkeypatch.setattr(laps.time, "perf_counter_ns", lambda: now[0])
    return now


def test_cold_steps_are_left_out_where_enough_others_follow(clock: list[int]) -> None:
    timed = StepTimer(fake_torch(on_gpu=False))
    for span in (0, 900, 500, 10, 30, 20):
        clock[0] += span
        timed.lap()
    summary = timed.summary()
    assert summary is not None
    assert (summary.median_ns, summary.min_ns, summary.max_ns, summary.steps, summary.how) == (20, 10, 30, 3, "clock")
    assert (summary.laps_ns, summary.cpu_ns) == ((10, 30, 20), 20)


def test_of_few_steps_none_is_left_out(clock: list[int]) -> None:
    timed = StepTimer(fake_torch(on_gpu=False))
    for span in (0, 40, 20):
        clock[0] += span
        timed.lap()
    assert timed.summary().median_ns == 30  # type: ignore[union-attr]
    assert StepTimer(fake_torch(on_gpu=False)).summary() is None


def test_on_a_gpu_events_are_believed_and_not_the_clock_that_runs_ahead(clock: list[int]) -> None:
    timed = StepTimer(fake_torch(on_gpu=True))
    for _ in range(4):
        clock[0] += 10
        FakeEvent.now_ms += 2.0
        timed.lap()
    summary = timed.summary(cold=0)
    assert summary is not None
    assert (summary.median_ns, summary.how) == (2_000_000, "cuda events")
    assert (summary.laps_ns, summary.cpu_ns) == ((2_000_000,) * 3, 10)


def test_of_many_steps_the_latest_are_stored(clock: list[int]) -> None:
    timed = StepTimer(fake_torch(on_gpu=False))
    for span in range(200):
        clock[0] += span
        timed.lap()
    summary = timed.summary(cold=0)
    assert summary is not None
    assert (summary.steps, summary.laps_ns) == (199, tuple(range(136, 200)))


def test_what_happens_between_a_lap_and_the_next_beginning_is_not_counted(clock: list[int]) -> None:
    timed = StepTimer(fake_torch(on_gpu=False))
    for _ in range(3):
        clock[0] += 10
        timed.lap()
        clock[0] += 1000
        timed.resume()
    assert timed.summary(cold=0).max_ns == 10  # type: ignore[union-attr]


def test_steps_that_still_get_faster_are_not_settled(clock: list[int]) -> None:
    def settled(*spans: int) -> bool:
        timed = StepTimer(fake_torch(on_gpu=False))
        timed.lap()
        for span in spans:
            clock[0] += span
            timed.lap()
        return timed.summary(cold=0).settled  # type: ignore[union-attr]

    assert not settled(100, 80, 60, 40)
    assert settled(50, 48, 52, 49)
    assert settled(40, 60, 80)


@pytest.mark.parametrize(
    ("settled", "kept", "note"),
    [
        (True, True, "the recording or the environment changed the program"),
        (False, False, "the bare steps were not warm yet; use a larger --skip"),
    ],
    ids=["steady", "warming"],
)
def test_bare_steps_slower_than_recorded_ones_are_doubted(settled: bool, kept: bool, note: str) -> None:
    bare, recorded = (StepTime(median, median, median, 8, "clock", settled) for median in (2_000, 1_000))
    found, doubt = reliable_bare_step(bare, recorded)
    assert (found is not None) is kept
    assert doubt == f"bare steps took 2,000 ns, recorded ones 1,000 ns: {note}"


def test_bare_steps_faster_than_recorded_ones_are_believed() -> None:
    bare, recorded = (StepTime(median, median, median, 8, "clock", False) for median in (1_000, 2_000))
    assert reliable_bare_step(bare, recorded) == (bare, "")
    assert reliable_bare_step(bare, None) == (bare, "")


def test_of_uneven_steps_more_are_timed(clock: list[int]) -> None:
    timed = StepTimer(fake_torch(on_gpu=False))
    plan = Plan(folder="", skip=2, settle_s=1e-6)
    for span in (0, 900, 500, 10, 10, 10):
        clock[0] += span * 1_000
        timed.lap()
    assert not timed.are_uneven(), "the first two steps are cold"
    assert plan.has_settled(len(timed), timed.elapsed_s(), timed.are_uneven) is True
    clock[0] += 50_000
    timed.lap()
    assert timed.are_uneven()
    assert not plan.has_settled(5, timed.elapsed_s(), timed.are_uneven)
    assert plan.has_settled(6, timed.elapsed_s(), timed.are_uneven), "at most three times as many"
