"""Bars of one lane nest or follow each other; bars of one lane and depth follow each other."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpline.timeline import lanes
from warpline.timeline.lanes import pack
from warpline.trace.arrays import Int64s
from warpline.trace.nesting import order_for_nesting

SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 25)), max_size=40)


def sorted_bars(spans: list[tuple[int, int]]) -> tuple[Int64s, Int64s]:
    starts = np.array([start for start, _ in spans], np.int64)
    ends = starts + np.array([length for _, length in spans], np.int64)
    order = order_for_nesting(np.zeros_like(starts), starts, ends)
    return starts[order], ends[order]


@given(SPANS)
def test_bars_of_a_lane_nest_or_follow_each_other(spans: list[tuple[int, int]]) -> None:
    starts, ends = sorted_bars(spans)
    lane, _ = pack(starts, ends)
    for number in range(int(lane.max(initial=-1)) + 1):
        mine = [(start, end) for start, end in zip(starts[lane == number], ends[lane == number], strict=True)]
        for place, (_, end) in enumerate(mine):
            for later_start, later_end in mine[place + 1 :]:
                assert later_start >= end or later_end <= end, "overlaps without nesting"


@given(SPANS, st.integers(0, 3))
def test_bars_of_a_lane_and_depth_begin_and_end_in_one_order(spans: list[tuple[int, int]], tick_ns: int) -> None:
    starts, ends = sorted_bars(spans)
    lane, depth = pack(starts, ends, tick_ns)
    for place in {*zip(lane.tolist(), depth.tolist(), strict=True)}:
        mine = np.flatnonzero((lane == place[0]) & (depth == place[1])).tolist()
        for one, after in pairwise(mine):
            assert starts[after] >= ends[one] - tick_ns
            assert ends[after] >= ends[one]


def test_a_call_that_seems_to_outlast_its_caller_by_a_tick_stays_in_it() -> None:
    # A caller, a call in it that ends a tick later, and the next caller.
    starts, ends = np.array([0, 4, 10]), np.array([10, 11, 20])
    assert [found.tolist() for found in pack(starts, ends, tick_ns=1)] == [[0, 0, 0], [0, 1, 0]]
    assert [found.tolist() for found in pack(starts, ends)] == [[0, 1, 0], [0, 0, 0]]


def test_bars_that_fit_nowhere_lie_in_the_last_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "MOST_LANES", 2)
    starts = np.arange(4)
    assert pack(starts, starts + 10)[0].tolist() == [0, 1, 1, 1]
