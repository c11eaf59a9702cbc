"""Parents, depths and the innermost interval, compiled and with NumPy, held against a search over all pairs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpline.trace import nesting_native
from warpline.trace.arrays import NONE
from warpline.trace.nesting import (
    MICROSECOND_NS,
    ROUNDED_TWICE,
    Nest,
    clock_tick_ns,
    nearest_marked,
    nest,
    order_for_nesting,
    totals,
)

Rows = list[tuple[int, int, int]]


@pytest.fixture(autouse=True, scope="module", params=["compiled", "numpy"])
def way(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test here asks both."""
    if request.param == "compiled" and nesting_native.load_library() is None:
        pytest.skip("nest.c was not built")
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "numpy":
            patch.setattr(nesting_native, "load_library", lambda: None)
        yield


def any_rows(longest: int) -> st.SearchStrategy[Rows]:
    """Intervals that nest, overlap, touch and repeat as they like."""
    span = st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, longest))
    return st.lists(span.map(lambda row: (row[0], row[1], row[1] + row[2])), max_size=40)


@st.composite
def trees(draw: st.DrawFn) -> Rows:
    """Properly nested intervals on two lanes, touching and empty ones among them."""
    rows: Rows = []

    def fill(lane: int, low: int, high: int, depth: int) -> None:
        cuts = sorted(draw(st.lists(st.integers(low, high), max_size=6)))
        for start, end in zip(cuts[::2], cuts[1::2], strict=False):
            rows.append((lane, start, end))
            if depth < 3 and end - start > 2:
                fill(lane, start, end, depth + 1)

    for lane in (0, 5):
        fill(lane, 0, 50, 0)
    return rows


def columns(rows: Rows) -> list[np.ndarray]:
    return [np.array([row[column] for row in rows], np.int64) for column in range(3)]


def build(rows: Rows, tick_ns: int = 0) -> Nest:
    lanes, starts, ends = columns(rows)
    order = order_for_nesting(lanes, starts, ends)
    return nest(lanes[order], starts[order], ends[order], tick_ns)


def encloses(tree: Nest, outer: int, inner: int) -> bool:
    def close(row: int) -> float:
        return max(float(tree.ends[row]), tree.starts[row] + 0.5)

    return bool(
        tree.lanes[outer] == tree.lanes[inner]
        and tree.starts[outer] <= tree.starts[inner] < close(outer)
        and close(inner) <= close(outer)
    )


@given(trees())
def test_the_parent_is_the_smallest_interval_around(rows: Rows) -> None:
    tree = build(rows)
    for row in range(len(rows)):
        around = [other for other in range(row) if encloses(tree, other, row)]
        if not around:
            assert tree.parents[row] == NONE
            continue
        parent = int(tree.parents[row])
        assert encloses(tree, parent, row)
        assert tree.ends[parent] - tree.starts[parent] == min(tree.ends[other] - tree.starts[other] for other in around)


@given(trees())
def test_depth_counts_the_ancestors(rows: Rows) -> None:
    tree = build(rows)
    for row in range(len(rows)):
        ancestors, parent = 0, tree.parents[row]
        while parent != NONE:
            ancestors, parent = ancestors + 1, tree.parents[parent]
        assert tree.depths[row] == ancestors


@given(trees(), st.integers(0, 50))
def test_innermost_is_the_smallest_interval_open_at_a_moment(rows: Rows, moment: int) -> None:
    tree = build(rows)
    found = int(tree.innermost(np.array([5]), np.array([moment]))[0])
    around = [row for row in range(len(rows)) if tree.lanes[row] == 5 and tree.starts[row] <= moment < tree.ends[row]]
    if not around:
        assert found == NONE
    else:
        assert tree.starts[found] <= moment < tree.ends[found]
        assert tree.ends[found] - tree.starts[found] == min(tree.ends[row] - tree.starts[row] for row in around)


def test_an_interval_that_only_overlaps_is_no_parent() -> None:
    tree = build([(0, 0, 100), (0, 10, 30), (0, 20, 40)])
    assert tree.parents.tolist() == [NONE, 0, 0]
    assert tree.depths.tolist() == [0, 1, 1]


def encloses_rounded(tree: Nest, outer: int, inner: int, tick_ns: int) -> bool:
    """The definition: it ends no earlier, or by a tick at most while most of the inner one lies inside."""

    def close(row: int) -> float:
        return max(float(tree.ends[row]), tree.starts[row] + 0.5)

    excess = close(inner) - close(outer)
    inside = close(outer) - tree.starts[inner]
    return bool(tree.lanes[outer] == tree.lanes[inner] and (excess <= 0 or (excess <= tick_ns and inside > excess)))


@given(any_rows(12), st.integers(0, 3))
def test_the_parent_is_the_last_begun_that_encloses(rows: Rows, tick_ns: int) -> None:
    tree = build(rows, tick_ns)
    for row in range(len(rows)):
        around = [other for other in range(row) if encloses_rounded(tree, other, row, tick_ns)]
        assert tree.parents[row] == max(around, default=NONE)
        assert tree.depths[row] == (tree.depths[max(around)] + 1 if around else 0)


@given(any_rows(12), st.integers(0, 3))
def test_late_times_nest_like_early_ones(rows: Rows, tick_ns: int) -> None:
    late = [(lane, start + 2**62, end + 2**62) for lane, start, end in rows]
    assert build(late, tick_ns).parents.tolist() == build(rows, tick_ns).parents.tolist()


def test_a_deep_nest_is_left_at_each_of_its_ends() -> None:
    depth = 2_000
    tree = build([(0, level, 3 * depth - level) for level in range(depth)])
    moments = np.arange(depth, 3 * depth + 1)
    expected = np.where(moments <= 2 * depth, depth - 1, 3 * depth - 1 - moments)
    assert tree.innermost(np.zeros(len(moments), np.int64), moments).tolist() == expected.tolist()


@given(any_rows(12))
def test_the_order_is_that_of_a_stable_sort(rows: Rows) -> None:
    order = order_for_nesting(*columns(rows))
    expected = sorted(range(len(rows)), key=lambda row: (rows[row][0], rows[row][1], -rows[row][2]))
    assert order.tolist() == expected


@given(any_rows(12), st.lists(st.tuples(st.integers(-1, 3), st.integers(-2, 45)), max_size=20))
def test_questions_may_come_in_any_order(rows: Rows, asked: list[tuple[int, int]]) -> None:
    tree = build(rows)
    lanes, moments = (np.array([pair[column] for pair in asked], np.int64) for column in range(2))
    for (lane, moment), found in zip(asked, tree.innermost(lanes, moments).tolist(), strict=True):
        begun = [row for row in range(len(rows)) if tree.lanes[row] == lane and tree.starts[row] <= moment]
        row = max(begun, default=NONE)
        while row != NONE and tree.ends[row] <= moment:
            row = int(tree.parents[row])
        assert found == row


@given(any_rows(12), st.data())
def test_the_nearest_marked_row_is_itself_or_an_ancestor(rows: Rows, data: st.DataObject) -> None:
    tree = build(rows)
    marked = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))), bool)
    for row, found in enumerate(nearest_marked(tree.parents, marked).tolist()):
        expected = row
        while expected != NONE and not marked[expected]:
            expected = int(tree.parents[expected])
        assert found == expected


def test_a_parent_behind_its_child_is_found_too() -> None:
    assert nearest_marked(np.array([2, NONE, 1]), np.array([False, True, False])).tolist() == [1, 1, 1]


def test_a_call_that_ends_one_tick_after_its_caller_stays_in_it() -> None:
    rows = [(0, 0, 1_000), (0, 100, 1_001), (0, 200, 900)]
    assert build(rows, tick_ns=1).parents.tolist() == [NONE, 0, 1]
    assert build(rows).parents.tolist() == [NONE, NONE, 1]


def test_what_begins_in_the_last_tick_is_not_inside() -> None:
    assert build([(0, 0, 1_000), (0, 999, 1_500)], tick_ns=1).parents.tolist() == [NONE, NONE]
    assert build([(0, 0, 1_000), (0, 999, 1_001)], tick_ns=1).parents.tolist() == [NONE, NONE]


def test_intervals_of_whole_microseconds_are_rounded_to_one_however_they_are_shifted() -> None:
    starts, none = np.array([17, 5_001, 2_500]), np.empty(0, np.int64)
    assert clock_tick_ns(starts, starts + np.array([1_000, 0, 3_000])) == MICROSECOND_NS
    assert clock_tick_ns(starts, starts + np.array([1_000, 1, 3_000])) == 1
    assert clock_tick_ns(none, none) == MICROSECOND_NS


@given(st.integers(0, 5_000), st.lists(st.integers(0, 999), min_size=2, max_size=2))
def test_a_call_stays_in_its_caller_when_starts_and_lengths_are_rounded(shift: int, begins: list[int]) -> None:
    """A call within its caller, true times in tenths of a microsecond, written as whole microseconds."""
    caller, call = (shift, shift + 40_000), (shift + 10_000 + begins[0], shift + 40_000 - begins[1] % 3)
    rows = [
        (0, start // 1_000 * 1_000, start // 1_000 * 1_000 + -(-(end - start) // 1_000) * 1_000)
        for start, end in (caller, call)
    ]
    tick = ROUNDED_TWICE * clock_tick_ns(*(np.array([row[side] for row in rows]) for side in (1, 2)))
    assert build(rows, tick).parents.tolist() == [NONE, 0]


def test_a_total_is_that_of_a_row_and_of_all_that_it_encloses() -> None:
    parents, depths = np.array([NONE, 0, 1, 0, NONE]), np.array([0, 1, 2, 1, 0])
    assert totals(parents, depths, np.array([1, 20, 300, 4000, 50000])).tolist() == [4321, 320, 300, 4000, 50000]
