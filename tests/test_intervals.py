"""Sets of time, held against sets of single nanoseconds."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from warpline import intervals
from warpline.intervals import (
    EMPTY,
    LaneLine,
    LaneSpans,
    LaneTimes,
    Spans,
    at_least,
    clip,
    complement,
    difference,
    intersection,
    joined,
    union,
)

MOMENTS = st.integers(0, 60)
PAIRS = st.lists(st.tuples(MOMENTS, MOMENTS), max_size=12)


def as_spans(pairs: list[tuple[int, int]]) -> Spans:
    return union(np.array([a for a, _ in pairs], np.int64), np.array([b for _, b in pairs], np.int64))


def as_moments(spans: Spans) -> set[int]:
    return {moment for start, end in zip(spans.starts, spans.ends, strict=True) for moment in range(start, end)}


def moments_of(pairs: list[tuple[int, int]]) -> set[int]:
    return {moment for start, end in pairs for moment in range(start, end)}


@given(PAIRS)
def test_union_covers_exactly_what_its_intervals_cover(pairs: list[tuple[int, int]]) -> None:
    spans = as_spans(pairs)
    assert as_moments(spans) == moments_of(pairs)
    assert spans.total_ns() == len(moments_of(pairs))


@given(PAIRS)
def test_a_set_is_sorted_disjoint_and_does_not_touch_itself(pairs: list[tuple[int, int]]) -> None:
    spans = as_spans(pairs)
    assert (spans.starts < spans.ends).all()
    assert (spans.starts[1:] > spans.ends[:-1]).all()


@given(PAIRS, PAIRS)
def test_intersection_and_difference_are_those_of_sets(
    left: list[tuple[int, int]], right: list[tuple[int, int]]
) -> None:
    a, b = as_spans(left), as_spans(right)
    assert as_moments(intersection(a, b)) == moments_of(left) & moments_of(right)
    assert as_moments(difference(a, b)) == moments_of(left) - moments_of(right)


@given(st.lists(PAIRS, max_size=4), st.integers(1, 3))
def test_sets_are_joined_the_same_however_many_at_once(parts: list[list[tuple[int, int]]], at_once: int) -> None:
    with patch.object(intervals, "AT_ONCE", at_once):
        found = joined([as_spans(pairs) for pairs in parts])
    whole = as_spans([pair for pairs in parts for pair in pairs])
    assert (found.starts.tolist(), found.ends.tolist()) == (whole.starts.tolist(), whole.ends.tolist())


@given(PAIRS, MOMENTS, MOMENTS)
def test_a_window_is_cut_into_the_set_and_its_complement(pairs: list[tuple[int, int]], one: int, other: int) -> None:
    start, end = min(one, other), max(one, other)
    inside, outside = clip(as_spans(pairs), start, end), complement(as_spans(pairs), start, end)
    assert as_moments(inside) | as_moments(outside) == set(range(start, end))
    assert inside.total_ns() + outside.total_ns() == end - start


@given(st.lists(PAIRS, max_size=5), st.integers(1, 4))
def test_what_is_in_several_sets_is_counted_moment_by_moment(parts: list[list[tuple[int, int]]], count: int) -> None:
    sets = [as_moments(as_spans(pairs)) for pairs in parts]
    expected = {moment for moment in range(61) if sum(moment in one for one in sets) >= count}
    spans = [as_spans(pairs) for pairs in parts]
    none = np.empty(0, np.int64)
    starts, ends = (np.concatenate([none, *(getattr(one, side) for one in spans)]) for side in ("starts", "ends"))
    assert as_moments(at_least(count, starts, ends)) == expected


@given(st.lists(PAIRS, max_size=4), PAIRS, st.sampled_from([0, 2**62]))
def test_lanes_on_one_line_are_cut_as_each_by_itself(
    parts: list[list[tuple[int, int]]], cut: list[tuple[int, int]], late: int
) -> None:
    rows = [(lane, start + late, end + late) for lane, pairs in enumerate(parts) for start, end in pairs]
    lanes, starts, ends = (np.array([row[column] for row in rows], np.int64) for column in range(3))
    begins, stops = (np.array([pair[side] + late for pair in cut], np.int64) for side in (0, 1))
    line = LaneTimes.of(starts, ends, begins, stops)
    second = np.ones(len(cut), np.int64)  # only the second lane is cut
    spans = union(line.places(lanes, starts), line.places(lanes, ends))
    found = dict(line.by_lane(difference(spans, union(line.places(second, begins), line.places(second, stops)))))
    for lane, pairs in enumerate(parts):
        expected = moments_of(pairs) - (moments_of(cut) if lane == 1 else set())
        spans = found.get(lane, EMPTY)
        assert as_moments(Spans(spans.starts - late, spans.ends - late)) == expected


@given(st.lists(PAIRS, max_size=6), st.lists(st.tuples(st.integers(0, 5), MOMENTS, MOMENTS), max_size=8), st.booleans())
def test_sets_of_many_lanes_are_looked_up_as_each_by_itself(
    parts: list[list[tuple[int, int]]], asked: list[tuple[int, int, int]], far_apart: bool
) -> None:
    rows = [(lane, start, end) for lane, pairs in enumerate(parts) for start, end in pairs]
    rows += [(9, 0, 2**61)] * far_apart  # so far apart that one number cannot hold the places of all lanes
    lanes, starts, ends = (np.array([row[column] for row in rows], np.int64) for column in range(3))
    sets = LaneSpans.union(lanes, starts, ends)
    assert not far_apart or len(list(LaneLine.lines(np.arange(9), starts, ends))) > 1
    for lane, pairs in enumerate(parts):
        assert as_moments(sets.of(lane)) == as_moments(as_spans(pairs))
    asked = [(lane, min(one, other), max(one, other)) for lane, one, other in asked]
    lanes, starts, ends = (np.array([row[column] for row in asked], np.int64) for column in range(3))
    expected = [as_moments(clip(sets.of(lane), start, end)) for lane, start, end in asked]
    assert sets.covered_ns(lanes, starts, ends).tolist() == [len(moments) for moments in expected]
    which, begins, stops = sets.pieces(lanes, starts, ends)
    found: list[set[int]] = [set() for _ in asked]
    for row, begin, stop in zip(which.tolist(), begins.tolist(), stops.tolist(), strict=True):
        found[row] |= set(range(begin, stop))
    assert found == expected


@given(st.lists(PAIRS, max_size=4), PAIRS)
def test_the_sets_of_all_lanes_are_cut_by_one_set(
    parts: list[list[tuple[int, int]]], common: list[tuple[int, int]]
) -> None:
    rows = [(lane, start, end) for lane, pairs in enumerate(parts) for start, end in pairs]
    lanes, starts, ends = (np.array([row[column] for row in rows], np.int64) for column in range(3))
    for line in LaneLine.lines(lanes, starts, ends):
        found = line.taken(line.cut(line.union(lanes, starts, ends), as_spans(common)))
        for lane in line.lanes.tolist():
            assert as_moments(found.of(lane)) == as_moments(as_spans(parts[lane])) & as_moments(as_spans(common))
