"""Warm-up ends when times stop changing, and says when they did not."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from warpline.bench.settle import Settling, WarmUp, settle


class Windows:
    """Windows of given medians; each takes a tenth of a second."""

    def __init__(self, medians: Iterator[float], noise: float = 0.0) -> None:
        self.medians, self.noise, self.clock = medians, noise, 0

    def __call__(self) -> list[float]:
        self.clock += 100_000_000
        middle = next(self.medians)
        return [middle * (1 + self.noise * step) for step in (-2, -1, 0, 1, 2)]

    def now(self) -> int:
        return self.clock


def settled(medians: list[float], noise: float = 0.0, most_seconds: float = 3.0) -> WarmUp:
    def forever() -> Iterator[float]:
        yield from medians
        while True:
            yield medians[-1]

    windows = Windows(forever(), noise)
    return settle(windows, windows.now, most_seconds=most_seconds)


def test_steady_times_settle_after_three_windows() -> None:
    found = settled([100.0])
    assert (found.settled, found.calls, found.seconds) == (True, 15, 0.3)
    assert "3 windows of 5" in found.reason


def test_it_waits_until_times_stop_falling() -> None:
    found = settled([800.0, 400.0, 200.0, 110.0, 100.0])
    # Windows 5, 6 and 7 are the first three alike.
    assert (found.settled, found.calls) == (True, 35)


def test_times_that_keep_falling_never_settle_and_it_says_so() -> None:
    found = settled([1000 * 0.95**step for step in range(100)], most_seconds=2.0)
    assert not found.settled
    assert "still differ by 10.8 %" in found.reason
    assert found.seconds >= 2.0


def test_noise_within_windows_widens_what_counts_as_alike() -> None:
    assert settled([100.0, 104.0, 100.0], noise=0.0).calls > 15
    assert settled([100.0, 104.0, 100.0], noise=0.05).calls == 15


def test_the_least_time_is_kept() -> None:
    windows = Windows(iter([100.0] * 100))
    assert settle(windows, windows.now, most_seconds=3.0, least_seconds=0.75).seconds >= 0.75


@given(st.lists(st.floats(1, 1e9), min_size=3, max_size=20))
def test_settled_means_that_the_last_three_medians_are_within_the_tolerance(medians: list[float]) -> None:
    watch = Settling()
    for median in medians:
        watch.add([median])
    last = medians[-3:]
    assert watch.settled == ((max(last) - min(last)) / min(last) <= watch.tolerance)
