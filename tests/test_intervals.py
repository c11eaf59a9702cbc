"""Sets of time, held against sets of single nanoseconds."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from warpline import intervals
from warpline.intervals import (
    EMPTY,
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
    assert as_moments(at_least(count, [as_spans(pairs) for pairs in parts])) == expected


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
