"""Parents, depths and the innermost interval, held against a search over all pairs."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from warpline.trace.columns import NONE
from warpline.trace.nesting import Nest, nest, order_for_nesting


@st.composite
def trees(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    """Properly nested intervals on two lanes, touching and empty ones among them."""
    rows: list[tuple[int, int, int]] = []

    def fill(lane: int, low: int, high: int, depth: int) -> None:
        cuts = sorted(draw(st.lists(st.integers(low, high), max_size=6)))
        for start, end in zip(cuts[::2], cuts[1::2], strict=False):
            rows.append((lane, start, end))
            if depth < 3 and end - start > 2:
                fill(lane, start, end, depth + 1)

    for lane in (0, 5):
        fill(lane, 0, 50, 0)
    return rows


def build(rows: list[tuple[int, int, int]]) -> Nest:
    lanes, starts, ends = (np.array([row[column] for row in rows], np.int64) for column in range(3))
    order = order_for_nesting(lanes, starts, ends)
    return nest(lanes[order], starts[order], ends[order])


def encloses(tree: Nest, outer: int, inner: int) -> bool:
    def close(row: int) -> float:
        return max(float(tree.ends[row]), tree.starts[row] + 0.5)

    return bool(
        tree.lanes[outer] == tree.lanes[inner]
        and tree.starts[outer] <= tree.starts[inner] < close(outer)
        and close(inner) <= close(outer)
    )


@given(trees())
def test_the_parent_is_the_smallest_interval_around(rows: list[tuple[int, int, int]]) -> None:
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
def test_depth_counts_the_ancestors(rows: list[tuple[int, int, int]]) -> None:
    tree = build(rows)
    for row in range(len(rows)):
        ancestors, parent = 0, tree.parents[row]
        while parent != NONE:
            ancestors, parent = ancestors + 1, tree.parents[parent]
        assert tree.depths[row] == ancestors


@given(trees(), st.integers(0, 50))
def test_innermost_is_the_smallest_interval_open_at_a_moment(rows: list[tuple[int, int, int]], moment: int) -> None:
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
