"""Which GPU operation of one sequence is which of another: by name, grid and block, and by their neighbours.

A program repeats its kernels in the same order. One kernel with one grid may serve several ops (persistent matmul
kernels have one block per multiprocessor, whatever the shapes); what runs before and after it then tells them apart.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from warpline.trace.arrays import NONE, Bools, Hashes, Int64s, greatest_of, hashed, least_of

NEIGHBOURS = ((0, 0), (1, 1), (1, 0), (0, 1), (2, 2), (2, 0), (0, 2), (4, 4), (4, 0), (0, 4), (8, 8), (8, 0), (0, 8))
"""How many operations before and after are compared, until all that fit agree. An operation too near an end is
known by one side alone."""


class KernelSequence(Struct, frozen=True):
    """Operations in order, each with a number for what it is and one for the lane it runs in."""

    kinds: Int64s
    lanes: Int64s


def same_kernels(mine: KernelSequence, other: KernelSequence, labels: Int64s) -> Int64s:
    """For each operation, one of the other sequence that it equals; NONE where nothing fits or what fits has different
    labels. Operations with the label NONE serve as neighbours alone."""
    found = np.full(len(mine.kinds), NONE, np.int64)
    for before, after in NEIGHBOURS:
        open_rows = np.flatnonzero(found == NONE)
        if not len(open_rows) or not len(labels):
            break
        there, there_whole = _surroundings(other, before, after)
        here, here_whole = _surroundings(mine, before, after)
        rows, asking = np.flatnonzero(there_whole), open_rows[here_whole[open_rows]]
        if not len(rows):
            continue
        theirs, place = np.unique(there[rows], return_inverse=True)
        low, high = least_of(len(theirs), place, labels[rows]), greatest_of(len(theirs), place, labels[rows])
        first = least_of(len(theirs), place, rows)
        usable = (low == high) & (low != NONE)
        at = np.minimum(np.searchsorted(theirs, here[asking]), len(theirs) - 1)
        fits = (theirs[at] == here[asking]) & usable[at]
        found[asking[fits]] = first[at[fits]]
    return found


def _surroundings(sequence: KernelSequence, before: int, after: int) -> tuple[Hashes, Bools]:
    """A number for each operation with its neighbours in the same lane, and whether it has as many."""
    kinds, neighbours = sequence.kinds, []
    whole = np.ones(len(kinds), bool)
    for distance in range(-before, after + 1):
        there = np.arange(len(kinds)) + distance
        whole &= (there >= 0) & (there < len(kinds))
        there = np.clip(there, 0, max(len(kinds) - 1, 0))
        whole &= sequence.lanes[there] == sequence.lanes
        neighbours.append(kinds[there])
    return hashed(*neighbours), whole


def aligned(weights: npt.NDArray[np.int8]) -> Int64s:
    """The pairs of two sequences, in the order of both, with the largest sum of weights: for each row of the matrix its
    column, or NONE. A pair without weight is none (Needleman and Wunsch 1970, with gaps that cost nothing)."""
    rows, columns = weights.shape
    best = np.zeros((rows + 1, columns + 1), np.int32)
    for row in range(rows):
        paired = np.maximum(best[row, 1:], best[row, :-1] + weights[row])
        best[row + 1, 1:] = np.maximum.accumulate(paired)
    found = np.full(rows, NONE, np.int64)
    row, column = rows, columns
    while row and column:
        weight = weights[row - 1, column - 1]
        if weight and best[row, column] == best[row - 1, column - 1] + weight:
            row, column = row - 1, column - 1
            found[row] = column
        elif best[row, column] == best[row - 1, column]:
            row -= 1
        else:
            column -= 1
    return found
