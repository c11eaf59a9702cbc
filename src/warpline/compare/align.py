"""Aligns two sequences: the pairs, in order in both, whose likenesses sum to the most.

Hirschberg's form of the classic dynamic programme: time is the product of the lengths, memory their sum. Rows are
computed as arrays.
"""

from __future__ import annotations

import numpy as np

from warpline.trace.columns import Floats, Int64s

SMALL = 250_000
"""Cells of a table that is kept whole; larger ones are halved."""


def align(left: Int64s, right: Int64s, likeness: Floats) -> list[tuple[int, int]]:
    """Positions in both of the elements that belong together. Elements are codes, `likeness[a, b]` is not negative;
    zero is no pair."""
    first = 0
    shorter = min(len(left), len(right))
    # Beginnings and ends that are the same need no search.
    best = likeness.max(axis=1, initial=0.0)
    while first < shorter and _is_best(likeness, best, left[first], right[first]):
        first += 1
    last = 0
    while last < shorter - first and _is_best(likeness, best, left[-1 - last], right[-1 - last]):
        last += 1
    middle = _align(left[first : len(left) - last], right[first : len(right) - last], likeness)
    return [
        *((place, place) for place in range(first)),
        *((first + mine, first + other) for mine, other in middle),
        *((len(left) - place, len(right) - place) for place in range(last, 0, -1)),
    ]


def _is_best(likeness: Floats, best: Floats, mine: int, other: int) -> bool:
    return bool(likeness[mine, other] > 0 and likeness[mine, other] == best[mine])


def _align(left: Int64s, right: Int64s, likeness: Floats) -> list[tuple[int, int]]:
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


def _last_row(left: Int64s, right: Int64s, likeness: Floats) -> Floats:
    """The largest sum for all of `left` and each beginning of `right`."""
    row = np.zeros(len(right) + 1)
    for element in left:
        row = _next_row(row, likeness[element][right])
    return row


def _next_row(row: Floats, gains: Floats) -> Floats:
    longer = row.copy()
    np.maximum(longer[1:], np.where(gains > 0, row[:-1] + gains, 0), out=longer[1:])
    result: Floats = np.maximum.accumulate(longer)
    return result


def _traced(left: Int64s, right: Int64s, likeness: Floats) -> list[tuple[int, int]]:
    rows = np.zeros((len(left) + 1, len(right) + 1))
    for place, element in enumerate(left):
        rows[place + 1] = _next_row(rows[place], likeness[element][right])
    pairs = []
    mine, other = len(left), len(right)
    while mine and other:
        here = rows[mine, other]
        gain = likeness[left[mine - 1], right[other - 1]]
        if gain > 0 and here == rows[mine - 1, other - 1] + gain:
            mine, other = mine - 1, other - 1
            pairs.append((mine, other))
        elif here == rows[mine - 1, other]:
            mine -= 1
        else:
            other -= 1
    return pairs[::-1]
