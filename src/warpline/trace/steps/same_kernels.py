"""Which GPU operation of one sequence is which of another: by name, grid and block, and by their neighbours.

A program repeats its kernels in the same order. One kernel with one grid may serve several ops (persistent matmul
kernels have one block per multiprocessor, whatever the shapes); what runs before and after it then tells them apart.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from warpline.trace.arrays import NONE, Bools, Hashes, Int64s, Texts, hashed

NEIGHBOURS = ((0, 0), (1, 1), (1, 0), (0, 1), (2, 2), (2, 0), (0, 2), (4, 4), (4, 0), (0, 4), (8, 8), (8, 0), (0, 8))
"""How many operations before and after are compared, until all that fit agree. An operation too near an end is
known by one side alone."""


class Sequence(Struct, frozen=True):
    """Operations in order, each with a number for what it is and one for the lane it runs in."""

    kinds: Int64s
    lanes: Int64s


def same_kernels(mine: Sequence, other: Sequence, labels: Int64s) -> Int64s:
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
        low, high = np.full(len(theirs), np.iinfo(np.int64).max), np.full(len(theirs), NONE)
        np.minimum.at(low, place, labels[rows])
        np.maximum.at(high, place, labels[rows])
        first = np.full(len(theirs), len(labels))
        np.minimum.at(first, place, rows)
        usable = (low == high) & (low != NONE)
        at = np.minimum(np.searchsorted(theirs, here[asking]), len(theirs) - 1)
        fits = (theirs[at] == here[asking]) & usable[at]
        found[asking[fits]] = first[at[fits]]
    return found


def _surroundings(sequence: Sequence, before: int, after: int) -> tuple[Hashes, Bools]:
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


def fill_between(
    mine: Sequence, other: Sequence, found: Int64s, labels: Int64s, classes: tuple[Texts, Texts]
) -> Int64s:
    """The matches, and for operations between two of them those of the other sequence that lie there too.

    Counted from the match before and from the match after, the operation must be one of the same class with the same
    label. At the end of a lane one side is enough.
    """
    result = found.copy()
    missing = found == NONE
    begins = np.flatnonzero(missing & ~np.append(False, missing[:-1] & (mine.lanes[1:] == mine.lanes[:-1])))
    ends = np.flatnonzero(missing & ~np.append(missing[1:] & (mine.lanes[1:] == mine.lanes[:-1]), False)) + 1
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        before = begin > 0 and mine.lanes[begin - 1] == mine.lanes[begin]
        after = end < len(found) and mine.lanes[end] == mine.lanes[begin]
        forward = _neighbours(mine, other, range(begin, end), int(found[begin - 1]), 1, classes) if before else []
        backward = (
            _neighbours(mine, other, range(end - 1, begin - 1, -1), int(found[end]), -1, classes)[::-1] if after else []
        )
        if before and after:
            agreeing = zip(range(begin, begin + len(forward)), forward, strict=True)
            reach = {end - len(backward) + at: row for at, row in enumerate(backward)}
            for at, row in agreeing:
                if at in reach and labels[row] == labels[reach[at]] != NONE:
                    result[at] = row
        elif before:
            result[begin : begin + len(forward)] = forward
        elif after:
            result[end - len(backward) : end] = backward
    return result


def _neighbours(
    mine: Sequence, other: Sequence, rows: range, partner: int, way: int, classes: tuple[Texts, Texts]
) -> list[int]:
    """What follows a match in the other sequence, as long as it is of the class that follows here."""
    found: list[int] = []
    lane = other.lanes[partner]
    for row in rows:
        partner += way
        if not 0 <= partner < len(other.kinds) or other.lanes[partner] != lane:
            break
        if classes[0][row] != classes[1][partner]:
            break
        found.append(partner)
    return found
