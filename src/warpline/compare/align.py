"""Aligns two sequences: the pairs, in order in both, whose similarities sum to the most.

Hirschberg's form of the classic dynamic programme: time is the product of the lengths, memory their sum. Rows are
computed as arrays. Sequences that are too long for that are first paired at what occurs once in both.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Protocol

import numpy as np

from warpline.trace.arrays import Floats, Int64s

MAX_CACHED_CELLS = 8_000_000
"""Of rows of similarity, 64 MB."""
MAX_WHOLE_CELLS = 250_000
"""Cells of a table that is kept whole; larger ones are halved."""


MAX_CELLS = 200_000_000
"""Of the table for two sequences, which then take seconds; a step with 14,000 kernels on both sides."""


class Similarity(Protocol):
    """How alike two elements are; never negative, and zero is no pair."""

    def row(self, element: int, /) -> Floats:
        """The similarity of an element of the first sequence to each code of the second."""

    def of(self, element: int, other: int, /) -> float:
        """The similarity of two codes."""

    def best(self) -> Floats:
        """The largest of each row."""

    def twins(self) -> dict[int, int]:
        """For each code of the first that is the same as one of the second, that code."""


def align(left: Int64s, right: Int64s, similarity: Similarity) -> list[tuple[int, int]]:
    """Positions in both of the elements that belong together. Elements are codes."""
    known = _SimilarityRows(similarity)
    # Beginnings and ends that are the same need no search.
    shorter = min(len(left), len(right))
    first = known.same(left[:shorter], right[:shorter])
    rest = shorter - first
    last = known.same(left[::-1][:rest], right[::-1][:rest])
    middle = _anchored(left[first : len(left) - last], right[first : len(right) - last], known)
    return [
        *((place, place) for place in range(first)),
        *((first + at_left, first + at_right) for at_left, at_right in middle),
        *((len(left) - place, len(right) - place) for place in range(last, 0, -1)),
    ]


class _SimilarityRows:
    """Similarity by row; the rows that were asked for last are kept."""

    def __init__(self, similarity: Similarity) -> None:
        self._similarity, self._best = similarity, similarity.best()
        self._rows: dict[int, Floats] = {}
        self._cells = 0

    def __getitem__(self, element: int) -> Floats:
        row = self._rows.get(element)
        if row is None:
            row = self._similarity.row(element)
            if self._cells + len(row) > MAX_CACHED_CELLS:
                self._rows.clear()
                self._cells = 0
            self._rows[element] = row
            self._cells += len(row)
        return row

    def same(self, left: Int64s, right: Int64s) -> int:
        """How many pairs at the beginning have no better partner on the other side."""
        for place, (code, other) in enumerate(zip(left.tolist(), right.tolist(), strict=True)):
            if self._best[code] == 0 or self._similarity.of(code, other) != self._best[code]:
                return place
        return len(left)

    def once_in_both(self, left: Int64s, right: Int64s) -> list[tuple[int, int]]:
        """Positions of the elements that are the same and occur once on each side, in order in both."""
        twins, once_left, once_right = self._similarity.twins(), _once(left), _once(right)
        pairs = [(place, once_right[twins[code]]) for code, place in once_left.items() if twins.get(code) in once_right]
        return _rising(sorted(pairs))


def _anchored(left: Int64s, right: Int64s, similarity: _SimilarityRows) -> list[tuple[int, int]]:
    """The best pairs of sequences that are short enough; of others, what occurs once in both, and the best between."""
    if len(left) * len(right) <= MAX_CELLS:
        return _align(left, right, similarity)
    found: list[tuple[int, int]] = []
    after_left, after_right = 0, 0
    for at_left, at_right in [*similarity.once_in_both(left, right), (len(left), len(right))]:
        if (at_left - after_left) * (at_right - after_right) <= MAX_CELLS // 10:
            between = _align(left[after_left:at_left], right[after_right:at_right], similarity)
            found += [(after_left + one, after_right + two) for one, two in between]
        if at_left < len(left):
            found.append((at_left, at_right))
        after_left, after_right = at_left + 1, at_right + 1
    return found


def _once(codes: Int64s) -> dict[int, int]:
    values, first, counts = np.unique(codes, return_index=True, return_counts=True)
    return dict(zip(values[counts == 1].tolist(), first[counts == 1].tolist(), strict=True))


def _rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest part of the pairs, which are in order on the left, that is in order on the right too."""
    ends: list[int] = []
    at: list[int] = []
    before: list[int] = []
    for place, (_, other) in enumerate(pairs):
        length = bisect_left(ends, other)
        before.append(at[length - 1] if length else -1)
        ends[length : length + 1] = [other]
        at[length : length + 1] = [place]
    chosen, place = [], at[-1] if at else -1
    while place >= 0:
        chosen.append(pairs[place])
        place = before[place]
    return chosen[::-1]


def _align(left: Int64s, right: Int64s, similarity: _SimilarityRows) -> list[tuple[int, int]]:
    if not len(left) or not len(right):
        return []
    if len(left) * len(right) <= MAX_WHOLE_CELLS or len(left) == 1:
        return _traced(left, right, similarity)
    half = len(left) // 2
    before = _last_row(left[:half], right, similarity)
    after = _last_row(left[half:][::-1], right[::-1], similarity)[::-1]
    cut = int(np.argmax(before + after))
    behind = _align(left[half:], right[cut:], similarity)
    return [
        *_align(left[:half], right[:cut], similarity),
        *((half + at_left, cut + at_right) for at_left, at_right in behind),
    ]


def _last_row(left: Int64s, right: Int64s, similarity: _SimilarityRows) -> Floats:
    """The largest sum for all of `left` and each beginning of `right`."""
    row = np.zeros(len(right) + 1)
    for element in left.tolist():
        row = _next_row(row, similarity[element][right])
    return row


def _next_row(row: Floats, gains: Floats) -> Floats:
    longer = row.copy()
    np.maximum(longer[1:], np.where(gains > 0, row[:-1] + gains, 0), out=longer[1:])
    return np.maximum.accumulate(longer)


def _traced(left: Int64s, right: Int64s, similarity: _SimilarityRows) -> list[tuple[int, int]]:
    rows = np.zeros((len(left) + 1, len(right) + 1))
    for place, element in enumerate(left.tolist()):
        rows[place + 1] = _next_row(rows[place], similarity[element][right])
    pairs = []
    at_left, at_right = len(left), len(right)
    while at_left and at_right:
        here = rows[at_left, at_right]
        gain = similarity[int(left[at_left - 1])][right[at_right - 1]]
        if gain > 0 and here == rows[at_left - 1, at_right - 1] + gain:
            at_left, at_right = at_left - 1, at_right - 1
            pairs.append((at_left, at_right))
        elif here == rows[at_left - 1, at_right]:
            at_left -= 1
        else:
            at_right -= 1
    return pairs[::-1]
