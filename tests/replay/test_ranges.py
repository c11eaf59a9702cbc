"""Ranges from the replay's spread and the gain, worked out on paper."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpline.estimate import Estimate
from warpline.replay import ranges
from warpline.replay.ranges import (
    LEAST_OWN_ERRORS,
    BareRange,
    Calm,
    Doubt,
    HalfWidth,
    Idle,
    OwnError,
    PredictedRanges,
    RangeLimits,
    bare_range,
    calm_step_ns,
    doubt_of_bare,
    doubt_of_gain,
    doubt_of_host,
    down_to_no_gain,
    is_host_paced,
    is_narrow,
    own_errors,
    ranges_of,
    spread_of,
)
from warpline.sources.local_record import append
from warpline.sources.record_files import outcomes_file

LAW = HalfWidth(others=0.1, by_fix={"batch": 0.2}, spread_power=1.0, gain_power=2.0)
GPU_PACED, HOST_PACED = Idle(0.0, 0.0), Idle(0.9, 0.9)


def test_half_a_range_grows_with_the_spread_and_the_gain() -> None:
    assert LAW.of(["tf32"], spread=1.0, gain=1.0) == pytest.approx(0.1)
    assert LAW.of(["tf32"], spread=1.5, gain=1.0) == pytest.approx(0.15)
    assert LAW.of(["tf32"], spread=1.5, gain=2.0) == pytest.approx(0.6)
    assert LAW.of(["batch"], spread=1.5, gain=1.0) == pytest.approx(0.3)


def test_the_least_known_of_several_fixes_counts() -> None:
    assert LAW.of(["tf32", "batch"], spread=1.5, gain=1.0) == pytest.approx(0.3)


def test_a_gain_below_one_makes_no_range_narrower_and_no_range_exceeds_the_largest_error() -> None:
    assert LAW.of(["tf32"], spread=1.0, gain=0.5) == pytest.approx(0.1)
    assert LAW.of(["tf32"], spread=1e6, gain=1.0) == ranges.LARGEST_ERROR


def test_the_spread_is_high_over_low_and_a_tenth_to_both_sides_at_least() -> None:
    assert spread_of(Estimate(50.0, 100.0, 200.0)) == pytest.approx(4.0)
    assert spread_of(Estimate(100.0, 100.0, 100.0)) == pytest.approx(1.1 / 0.9)
    assert spread_of(Estimate(80.0, 100.0, 100.0)) == pytest.approx(1.1 / 0.8)


def test_step_and_gain_have_ranges_around_what_is_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "STEP", HalfWidth(math.log(1.25), {}, 0.0, 0.0))
    monkeypatch.setattr(ranges, "GAIN", HalfWidth(math.log(2.0), {}, 0.0, 0.0))
    found = ranges_of(["tf32"], Estimate(900.0, 1000.0, 1500.0), 500.0, 1.5, GPU_PACED)
    assert found.step_ns == Estimate(*map(pytest.approx, (400.0, 500.0, 625.0)))  # type: ignore[arg-type]
    assert found.gain == Estimate(*map(pytest.approx, (1.0, 2.0, 4.0)))  # type: ignore[arg-type]
    # 450 of the 500 ns stay, whatever the fix does: the step is no shorter, and the gain at most 1500 / 450.
    bound = ranges_of(["tf32"], Estimate(900.0, 1000.0, 1500.0), 500.0, 1.5, GPU_PACED, RangeLimits(least_ns=450.0))
    assert bound.step_ns.low == 450.0
    assert bound.gain.high == pytest.approx(1500 / 450)
    # The fix leaves 600 ns at most, whatever else it does: the gain is at least 1000 / 600.
    sure = ranges_of(["tf32"], Estimate(900.0, 1000.0, 1500.0), 500.0, 1.5, GPU_PACED, RangeLimits(most_ns=600.0))
    assert sure.step_ns.high == 600.0
    assert sure.gain.low == pytest.approx(1000 / 600)
    # On a slow host it leaves up to 1,100 ns: what goes is time there, too, so that the gain is no loss.
    slow = ranges_of(["tf32"], Estimate(900.0, 1000.0, 1500.0), 900.0, 1.5, GPU_PACED, RangeLimits(most_ns=1100.0))
    assert slow.gain.low == 1.0


def test_a_step_with_a_fix_is_no_better_known_than_a_bare_step_at_its_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bare step is known within e^0.3 where the GPU sets the pace, and e^0.5 where the host does: e^0.4 is the host's. A
    fix that is known within e^0.3 has a step within e^0.5."""
    monkeypatch.setattr(ranges, "STEP", HalfWidth(0.3, {}, 0.0, 0.0))
    assert doubt_of_host(0.9, three_paces()) == Doubt(pytest.approx(math.sqrt(0.07)), pytest.approx(0.4))
    assert doubt_of_host(0.9, three_paces()).above(1.0, 0.3) == pytest.approx(math.exp(0.5))
    old = Estimate(1000.0, 1000.0, 1000.0)
    paced = [ranges_of(["tf32"], old, 500.0, 1.5, Idle(idle, idle)).step_ns for idle in (0.0, 0.2, 0.9)]
    assert paced[0] == Estimate(pytest.approx(500 * math.exp(-0.3)), 500.0, pytest.approx(500 * math.exp(0.3)))
    assert paced[2].low < paced[1].low < paced[0].low
    assert paced[2].high > paced[1].high > paced[0].high


def three_paces() -> tuple[BareRange, ...]:
    """Doubts of 0.3 to both sides, of 0.3 and 0.4, and of 0.4 and 0.5."""
    sides = ((0.1, 0.3, 0.3), (0.4, 0.3, 0.4), (math.inf, 0.4, 0.5))
    return tuple(BareRange(below, math.exp(-down), math.exp(up)) for below, down, up in sides)


def test_between_the_middles_of_two_paces_the_doubt_grows_in_proportion() -> None:
    # The middles lie at idle shares of 0.05, 0.25 and 0.7.
    for idle, down, up in ((0.0, 0.3, 0.3), (0.05, 0.3, 0.3), (0.15, 0.3, 0.35), (0.25, 0.3, 0.4), (0.475, 0.35, 0.45)):
        assert doubt_of_bare(idle, three_paces()) == Doubt(pytest.approx(down), pytest.approx(up))
    assert doubt_of_bare(1.0, three_paces()) == Doubt(pytest.approx(0.4), pytest.approx(0.5))


def test_a_slow_moment_makes_old_and_new_step_longer() -> None:
    # A graph takes the step from the host: a slow host makes the gain larger by e^0.5, and a fast one smaller by e^-0.4.
    host, device = Doubt(0.4, 0.5), Doubt(0.0, 0.0)
    assert doubt_of_gain(host, device, gain=3.0) == Doubt(0.4, 0.5)
    assert doubt_of_gain(device, host, gain=3.0) == Doubt(0.5, 0.4)
    assert doubt_of_gain(host, host, gain=3.0) == device
    # A host so slow that it sets the pace afterwards set it before: the gain is gone, and no loss.
    assert doubt_of_gain(device, host, gain=math.exp(0.2)) == Doubt(pytest.approx(0.2), 0.4)


def test_a_fix_that_may_do_nothing_may_leave_the_old_step() -> None:
    old = Estimate(800.0, 1000.0, 1200.0)
    sure, doubtful = (
        ranges_of(["prefetch"], old, 500.0, 1.5, Idle(0.9, 0.0), RangeLimits(may_do_nothing=may))
        for may in (False, True)
    )
    assert sure.step_ns.high < 1000.0 < bare_range(1000.0, 0.9).high < doubtful.step_ns.high
    assert sure.gain.low > 1.0 > doubtful.gain.low
    assert (sure.step_ns.low, sure.gain.high) == (doubtful.step_ns.low, doubtful.gain.high)


@given(
    old=st.floats(1.0, 1e12),
    new=st.floats(1.0, 1e12),
    spread=st.floats(1.0, 1e4),
    least=st.floats(0.0, 1e12),
    idle=st.floats(0.0, 1.0),
    left=st.floats(0.0, 1.0),
    fix=st.sampled_from(["cuda_graph", "torch_compile", "tf32"]),
)
def test_low_expected_and_high_are_in_order_and_the_gain_is_old_over_new(
    old: float, new: float, spread: float, least: float, idle: float, left: float, fix: str
) -> None:
    found = ranges_of([fix], bare_range(old, idle), new, spread, Idle(idle, left), RangeLimits(least_ns=least))
    for one in (found.step_ns, found.gain):
        assert 0 < one.low <= one.expected <= one.high < math.inf
    assert found.step_ns.low >= min(least, new)
    assert found.gain.expected == old / new
    assert found.step_ns.high / found.step_ns.expected > 1.02
    assert found.gain.expected / found.gain.low > 1.02
    wider = down_to_no_gain(found, old)
    assert wider.gain.low <= min(found.gain.low, 1.0) <= found.gain.expected
    assert wider.step_ns.high >= max(found.step_ns.high, old)


def test_a_fix_without_a_finding_may_gain_nothing() -> None:
    known = ranges.PredictedRanges(Estimate(80.0, 100.0, 125.0), Estimate(2.0, 4.0, 8.0))
    assert down_to_no_gain(known, old_ns=400.0) == ranges.PredictedRanges(
        Estimate(80.0, 100.0, 500.0), Estimate(0.5, 4.0, 8.0)
    )


def test_the_bare_step_is_less_certain_the_more_the_host_sets_the_pace() -> None:
    device, both, host = (bare_range(100.0, idle) for idle in (0.05, 0.2, 0.9))
    assert device.high < both.high < host.high
    assert device.low > both.low > host.low
    # A busy host makes steps longer, and none makes them shorter.
    assert host.high - 100 > 100 - host.low
    assert [is_host_paced(idle) for idle in (0.05, 0.2, 0.9)] == [False, True, True]


def test_a_slow_host_may_have_been_slow_for_the_moment() -> None:
    assert bare_range(100.0, idle_share=0.5, calm_ns=50.0).low == 50.0
    # The range of a usual host reaches further than a host that is hardly slower.
    assert bare_range(100.0, idle_share=0.9, calm_ns=95.0) == bare_range(100.0, idle_share=0.9)


def test_a_calm_step_has_its_device_s_work_and_its_waits() -> None:
    # On a host twice as fast 100 ns take 50; with 70 ns of GPU work 70; with 20 ns that it waits for something else 60.
    assert calm_step_ns(100.0, busy_ns=30.0, waits_ns=0.0, slowness=2.0) == 50.0
    assert calm_step_ns(100.0, busy_ns=70.0, waits_ns=0.0, slowness=2.0) == 70.0
    assert calm_step_ns(100.0, busy_ns=30.0, waits_ns=20.0, slowness=2.0) == 60.0
    assert calm_step_ns(100.0, busy_ns=120.0, waits_ns=0.0, slowness=2.0) == 100.0


def on_a_slow_host(calm: Calm | None) -> PredictedRanges:
    return ranges_of(["cuda_graph"], Estimate(60.0, 100.0, 120.0), 50.0, 1.2, HOST_PACED, RangeLimits(calm=calm))


def test_a_gain_is_no_more_certain_than_the_host_s_speed() -> None:
    known, doubted = on_a_slow_host(None), on_a_slow_host(Calm(step_ns=50.0, gain=1.05))
    # A usual host's gain is no better known than this one's.
    assert doubted.gain.low / 1.05 == pytest.approx(known.gain.low / known.gain.expected)
    assert (known.gain.expected, known.gain.high) == (doubted.gain.expected, doubted.gain.high)
    assert known.step_ns == doubted.step_ns


def test_a_slow_host_may_hide_a_gain() -> None:
    # The fix halves the device's work; this host needs 50 ns all the same, and a usual one 20.
    known, hidden = on_a_slow_host(None), on_a_slow_host(Calm(step_ns=20.0, gain=4.5))
    assert hidden.step_ns.low / 20.0 == pytest.approx(known.step_ns.low / 50.0)
    assert hidden.gain.high / 4.5 == pytest.approx(known.gain.high / 2.0)
    assert (known.step_ns.high, known.gain.low) == (hidden.step_ns.high, hidden.gain.low)


def test_a_step_that_is_known_within_a_quarter_is_narrow() -> None:
    assert is_narrow(Estimate(50.0, 100.0, 125.0))
    assert not is_narrow(Estimate(99.0, 100.0, 126.0))


INSERT = (
    "insert into outcomes (at, a, b, fix, predicted_low, predicted, predicted_high, spread, measured, timed)"
    " values ('', ?, '', ?, 1, ?, 3, ?, ?, ?)"
)
OWN_LAW = HalfWidth(others=0.1, by_fix={"tf32": 0.2}, spread_power=0.0, gain_power=0.0)


def test_only_timed_outcomes_count() -> None:
    assert own_errors() == {}
    append(outcomes_file(), INSERT, ("1", "tf32", 2.0, 1.5, 4.0, 1))
    append(outcomes_file(), INSERT, ("2", "tf32", 2.0, 1.5, 4.0, 0))
    append(outcomes_file(), INSERT, ("3", "tf32", -2.0, 1.5, 4.0, 1))
    append(outcomes_file(), INSERT, ("4", "tf32", 1e-300, 1.5, 1e300, 1))
    (found,) = own_errors()["tf32"]
    assert found == OwnError(pytest.approx(math.log(2)), 1.5, 2.0)  # type: ignore[arg-type]


def test_a_damaged_record_is_none() -> None:
    outcomes_file().write_bytes(b"no database" * 1000)
    assert own_errors() == {}


def test_the_constant_moves_towards_ones_own_errors() -> None:
    # The 80 % quantile of nine equal errors of 0.5 is 0.5: (8 * 0.2 + 9 * 0.5) / 17.
    nine = [OwnError(0.5, 1.0, 1.0)] * (LEAST_OWN_ERRORS + 1)
    assert OWN_LAW.of(["tf32"], 1.0, 1.0, {"tf32": nine}) == pytest.approx(6.1 / 17)
    assert OWN_LAW.of(["tf32"], 1.0, 1.0, {"tf32": nine[: LEAST_OWN_ERRORS - 1]}) == 0.2
    assert OWN_LAW.of(["bf16"], 1.0, 1.0, {"tf32": nine}) == 0.1


def test_an_error_counts_by_the_width_that_its_range_had() -> None:
    law = HalfWidth(others=0.1, by_fix={}, spread_power=1.0, gain_power=0.0)
    many = [OwnError(0.4, 2.0, 1.0)] * 8
    # Each is 0.4 where the range is twice as wide: 0.2, and with the weight of eight beside 0.1 it is 0.15.
    assert law.of(["x"], 1.0, 1.0, {"x": many}) == pytest.approx(0.15)
