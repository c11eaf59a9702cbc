"""Aligns two sequences: the pairs, in order in both, whose likenesses sum to the most.

Hirschberg's form of the classic dynamic programme: time is the product of the lengths, memory their sum. Rows are
computed as arrays. Sequences that are too long for that are first paired at what occurs once in both.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Protocol

import numpy as np

from warpline.trace.columns import Floats, Int64s

KEPT_CELLS = 8_000_000
"""Of rows of likeness, 64 MB."""
SMALL = 250_000
"""Cells of a table that is kept whole; larger ones are halved."""


MOST_CELLS = 200_000_000
"""Of the table for two sequences, which then take seconds; a step with 14,000 kernels on both sides."""


class Alike(Protocol):
    """How alike two elements are; never negative, and zero is no pair."""

    def row(self, element: int, /) -> Floats:
        """The likeness of an element of the first sequence to each code of the second."""

    def of(self, element: int, other: int, /) -> float:
        """The likeness of two codes."""

    def best(self) -> Floats:
        """The largest of each row."""

    def twins(self) -> dict[int, int]:
        """For each code of the first that is the same as one of the second, that code."""


def align(left: Int64s, right: Int64s, likeness: Alike) -> list[tuple[int, int]]:
    """Positions in both of the elements that belong together. Elements are codes."""
    known = _SimilarityRows(likeness)
    # Beginnings and ends that are the same need no search.
    shorter = min(len(left), len(right))
    first = known.same(left[:shorter], right[:shorter])
    rest = shorter - first
    last = known.same(left[::-1][:rest], right[::-1][:rest])
    middle = _anchored(left[first : len(left) - last], right[first : len(right) - last], known)
    return [
        *((place, place) for place in range(first)),
        *((first + mine, first + other) for mine, other in middle),
        *((len(left) - place, len(right) - place) for place in range(last, 0, -1)),
    ]


class _SimilarityRows:
    """Likeness by row; the rows that were asked for last are kept."""

    def __init__(self, likeness: Alike) -> None:
        self._likeness, self._best = likeness, likeness.best()
        self._kept: dict[int, Floats] = {}
        self._cells = 0

    def __getitem__(self, element: int) -> Floats:
        row = self._kept.get(element)
        if row is None:
            row = self._likeness.row(element)
            if self._cells + len(row) > KEPT_CELLS:
                self._kept.clear()
                self._cells = 0
            self._kept[element] = row
            self._cells += len(row)
        return row

    def same(self, left: Int64s, right: Int64s) -> int:
        """How many pairs at the beginning have no better partner on the other side."""
        for place, (mine, other) in enumerate(zip(left.tolist(), right.tolist(), strict=True)):
            if self._best[mine] == 0 or self._likeness.of(mine, other) != self._best[mine]:
                return place
        return len(left)

    def once_in_both(self, left: Int64s, right: Int64s) -> list[tuple[int, int]]:
        """Positions of the elements that are the same and occur once on each side, in order in both."""
        twins, mine, others = self._likeness.twins(), _once(left), _once(right)
        pairs = [(place, others[twins[code]]) for code, place in mine.items() if twins.get(code) in others]
        return _rising(sorted(pairs))


def _anchored(left: Int64s, right: Int64s, likeness: _SimilarityRows) -> list[tuple[int, int]]:
    """The best pairs of sequences that are short enough; of others, what occurs once in both, and the best between."""
    if len(left) * len(right) <= MOST_CELLS:
        return _align(left, right, likeness)
    found: list[tuple[int, int]] = []
    begin, start = 0, 0
    for mine, other in [*likeness.once_in_both(left, right), (len(left), len(right))]:
        if (mine - begin) * (other - start) <= MOST_CELLS // 10:
            between = _align(left[begin:mine], right[start:other], likeness)
            found += [(begin + one, start + two) for one, two in between]
        if mine < len(left):
            found.append((mine, other))
        begin, start = mine + 1, other + 1
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


def _align(left: Int64s, right: Int64s, likeness: _SimilarityRows) -> list[tuple[int, int]]:
    if not len(left) or not len(right):
        return []
    if len(left) * len(right) <= SMALL or len(left) == 1:
        return _traced(left, right, likeness)
    half = len(left) // 2
    before = _last_row(left[:half], right, likeness)
    after = _last_row(left[half:][::-1], right[::-1], likeness)[::-1]
    cut = int(np.argmax(before + after))
    behind = _align(left[half:], right[cut:], likeness)
    return [*_align(left[:half], right[:cut], likeness), *((half + mine, cut + other) for mine, other in behind)]


def _last_row(left: Int64s, right: Int64s, likeness: _SimilarityRows) -> Floats:
    """The largest sum for all of `left` and each beginning of `right`."""
    row = np.zeros(len(right) + 1)
    for element in left.tolist():
        row = _next_row(row, likeness[element][right])
    return row


def _next_row(row: Floats, gains: Floats) -> Floats:
    longer = row.copy()
    np.maximum(longer[1:], np.where(gains > 0, row[:-1] + gains, 0), out=longer[1:])
    result: Floats = np.maximum.accumulate(longer)
    return result


def _traced(left: Int64s, right: Int64s, likeness: _SimilarityRows) -> list[tuple[int, int]]:
    rows = np.zeros((len(left) + 1, len(right) + 1))
    for place, element in enumerate(left.tolist()):
        rows[place + 1] = _next_row(rows[place], likeness[element][right])
    pairs = []
    mine, other = len(left), len(right)
    while mine and other:
        here = rows[mine, other]
        gain = likeness[int(left[mine - 1])][right[other - 1]]
        if gain > 0 and here == rows[mine - 1, other - 1] + gain:
            mine, other = mine - 1, other - 1
            pairs.append((mine, other))
        elif here == rows[mine - 1, other]:
            mine -= 1
        else:
            other -= 1
    return pairs[::-1]
